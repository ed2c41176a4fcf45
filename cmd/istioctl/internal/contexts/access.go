package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
)

// Access holds the credentials for a server, or for the proxy in front of it, and how to
// check the server's identity. Certificates, keys and tokens are file names, except Token,
// which is the token itself.
type Access struct {
	Token                string `json:"-"`
	TokenFile            string `json:"tokenFile,omitempty"`
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	ClientCertificate    string `json:"clientCertificate,omitempty"`
	ClientKey            string `json:"clientKey,omitempty"`
	// ServerName is the name in the server's certificate; "" means the host of its URL.
	ServerName string `json:"tlsServerName,omitempty"`

	login *oidclogin.Source // gives tokens; nil for none
	from  Sources
}

// Sources names the place of each value of an Access, for messages.
type Sources struct {
	Token, TokenFile, CertificateAuthority, ClientCertificate, ClientKey, login string
}

// Flags and Environment are the places outside of contexts.
var (
	Flags = Sources{Token: "--token", TokenFile: "--token-file", CertificateAuthority: "--certificate-authority",
		ClientCertificate: "--client-certificate", ClientKey: "--client-key"}
	Environment = Sources{Token: "ISTIOCTL_TOKEN", TokenFile: "ISTIOCTL_TOKEN_FILE", CertificateAuthority: "ISTIOCTL_CERTIFICATE_AUTHORITY",
		ClientCertificate: "ISTIOCTL_CLIENT_CERTIFICATE", ClientKey: "ISTIOCTL_CLIENT_KEY"}
)

// inContext returns the places of the values of a context.
func inContext(name string) Sources {
	of := func(field string) string { return fmt.Sprintf("%s of context %s", field, name) }
	return Sources{TokenFile: of("tokenFile"), CertificateAuthority: of("certificateAuthority"),
		ClientCertificate: of("clientCertificate"), ClientKey: of("clientKey"), login: of("login")}
}

// From returns a with the places of its values.
func (a Access) From(places Sources) Access {
	a.from = places
	return a
}

// Or returns a, and takes the fields that a does not set from other. A token, a login or a
// client certificate in a replaces all three of other, because a request has one sender.
func (a Access) Or(other Access) Access {
	if !a.identifies() {
		a.Token, a.TokenFile, a.login = other.Token, other.TokenFile, other.login
		a.ClientCertificate, a.ClientKey = other.ClientCertificate, other.ClientKey
		authority := a.from.CertificateAuthority
		a.from = other.from
		a.from.CertificateAuthority = authority
	}
	if a.CertificateAuthority == "" {
		a.CertificateAuthority, a.from.CertificateAuthority = other.CertificateAuthority, other.from.CertificateAuthority
	}
	a.ServerName = cmp.Or(a.ServerName, other.ServerName)
	return a
}

// identifies reports whether there are credentials.
func (a Access) identifies() bool { return a.hasToken() || a.hasCertificate() }

func (a Access) hasToken() bool       { return a.Token != "" || a.TokenFile != "" || a.login != nil }
func (a Access) hasCertificate() bool { return a.ClientCertificate != "" || a.ClientKey != "" }

// Check returns an error if there are credentials of several kinds, of which the server
// would choose one, or if a certificate has no key.
func (a Access) Check() error {
	var given []string
	for _, one := range []struct {
		is    bool
		place string
	}{
		{a.Token != "", a.from.Token}, {a.TokenFile != "", a.from.TokenFile}, {a.login != nil, a.from.login},
		{a.hasCertificate(), a.from.ClientCertificate},
	} {
		if one.is {
			given = append(given, one.place)
		}
	}
	switch {
	case len(given) > 1:
		return fmt.Errorf("%s: each says who you are; give only one of them", strings.Join(given, " and "))
	case a.ClientCertificate != "" && a.ClientKey == "":
		return fmt.Errorf("%s is given without %s", a.from.ClientCertificate, a.from.ClientKey)
	case a.ClientCertificate == "" && a.ClientKey != "":
		return fmt.Errorf("%s is given without %s", a.from.ClientKey, a.from.ClientCertificate)
	}
	return nil
}

// below returns access with relative names resolved against dir.
func (a Access) below(dir string) Access {
	for _, name := range []*string{&a.TokenFile, &a.CertificateAuthority, &a.ClientCertificate, &a.ClientKey} {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(dir, *name)
		}
	}
	return a
}

// Fault is an error of the credentials on this machine. The server was not asked.
type Fault struct {
	Err error
	// Passing is true if a later request may succeed, for example once an issuer answers.
	Passing bool
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// IsFinal reports whether an error is a Fault that stays until a person mends it.
func IsFinal(err error) bool {
	var fault *Fault
	return errors.As(err, &fault) && !fault.Passing
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
