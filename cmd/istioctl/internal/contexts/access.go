package contexts

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
)

// Access holds the credentials for a server, or for the proxy in front of it, and how
// to check the server's identity. Certificates, keys and tokens are file names, except
// Token, which is in no file.
type Access struct {
	Token                string `json:"-"`
	TokenFile            string `json:"tokenFile,omitempty"`
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	ClientCertificate    string `json:"clientCertificate,omitempty"`
	ClientKey            string `json:"clientKey,omitempty"`
	// ServerName is the name in the server's certificate; "" means the host of its URL.
	ServerName string `json:"tlsServerName,omitempty"`

	login *oidclogin.Source // gives the token if no other is set; nil for none
}

// Or returns a, with what it leaves open from other. A token of either kind leaves no other
// open, and a certificate and its key go together.
func (a Access) Or(other Access) Access {
	if a.Token == "" && a.TokenFile == "" {
		a.Token, a.TokenFile, a.login = other.Token, other.TokenFile, other.login
	}
	if a.ClientCertificate == "" && a.ClientKey == "" {
		a.ClientCertificate, a.ClientKey = other.ClientCertificate, other.ClientKey
	}
	a.CertificateAuthority = cmp.Or(a.CertificateAuthority, other.CertificateAuthority)
	a.ServerName = cmp.Or(a.ServerName, other.ServerName)
	return a
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

// Apply makes the client of a server use the credentials.
func (a Access) Apply(opts *client.Options, server string) error {
	if a == (Access{}) {
		return nil
	}
	settings, err := a.tls()
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = settings
	opts.HTTPClient = &http.Client{Transport: transport}
	if a.TokenFile == "" && a.Token == "" && a.login == nil {
		return nil
	}
	if !isPrivate(server) {
		return fmt.Errorf("a token goes by https only, not to %s", server)
	}
	opts.HTTPClient.Transport = bearer{transport, a}
	return nil
}

// isPrivate reports whether nobody can read the traffic to the server on its way.
func isPrivate(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	return u.Scheme == "https" || IsLoopback(u.Hostname())
}

func (a Access) tls() (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if a.CertificateAuthority != "" {
		text, err := os.ReadFile(a.CertificateAuthority)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in it", a.CertificateAuthority)
		}
	}
	if a.ClientCertificate != "" || a.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(a.ClientCertificate, a.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// bearer adds the token of an Access to requests.
type bearer struct {
	http.RoundTripper
	access Access
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.access.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	return b.RoundTripper.RoundTrip(r)
}

// token returns the token, that of the file, which is read each time, or that of the login.
func (a Access) token(ctx context.Context) (string, error) {
	switch {
	case a.Token != "":
		return a.Token, nil
	case a.TokenFile != "":
		text, err := os.ReadFile(a.TokenFile)
		return string(text), err
	}
	return a.login.Token(ctx)
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
