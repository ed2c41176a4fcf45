package contexts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/internal/wholefile"
)

const (
	// maxToken bounds a file with a token, in bytes.
	maxToken = 64 << 10
	// maxRedirects is that of net/http.
	maxRedirects = 10
)

// Apply makes the client of a server use the credentials. Its errors are Faults.
func (a Access) Apply(opts *client.Options, server string) error {
	if !a.identifies() && a.CertificateAuthority == "" && a.ServerName == "" {
		return nil
	}
	if err := a.Check(); err != nil {
		return &Fault{Err: err}
	}
	settings, err := a.tls()
	if err != nil {
		return &Fault{Err: err}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = settings
	opts.HTTPClient = &http.Client{Transport: transport}
	if a.identifies() {
		opts.HTTPClient.CheckRedirect = stay
	}
	if !a.hasToken() {
		return nil
	}
	if !isPrivate(server) {
		return &Fault{Err: fmt.Errorf("a token goes by https only, not to %s", server)}
	}
	opts.HTTPClient.Transport = bearer{transport, a}
	return nil
}

// stay refuses a redirect to another server, which would get the credentials.
func stay(next *http.Request, before []*http.Request) error {
	from := before[0].URL
	switch {
	case next.URL.Scheme != from.Scheme || next.URL.Host != from.Host:
		return &Fault{Err: fmt.Errorf("%s://%s redirects to %s://%s, which gets no credentials: name that server with --server if you trust it",
			from.Scheme, from.Host, next.URL.Scheme, next.URL.Host)}
	case len(before) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
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
	authorities, err := credential.Authorities(a.CertificateAuthority)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.from.CertificateAuthority, err)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName, RootCAs: authorities}
	if a.hasCertificate() {
		pair, err := tls.LoadX509KeyPair(a.ClientCertificate, a.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", a.from.ClientCertificate, a.from.ClientKey, err)
		}
		settings.GetClientCertificate = a.show(&pair)
	}
	return settings, nil
}

// show returns the certificate for a server that accepts it. Without it, the server would not
// know that there is one.
func (a Access) show(pair *tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if err := asked.SupportsCertificate(pair); err != nil {
			return nil, &Fault{Err: fmt.Errorf("%s: the server does not accept %s, whose issuer is %q",
				a.from.ClientCertificate, a.ClientCertificate, pair.Leaf.Issuer.String())}
		}
		return pair, nil
	}
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
	r.Header.Set("Authorization", "Bearer "+token)
	return b.RoundTripper.RoundTrip(r)
}

// token returns the token, that of the file, which is read each time, or that of the login.
// Its errors are Faults.
func (a Access) token(ctx context.Context) (string, error) {
	switch {
	case a.Token != "":
		return checkToken(a.from.Token, a.Token)
	case a.TokenFile != "":
		text, err := wholefile.ReadAtMost(a.TokenFile, maxToken)
		if err != nil {
			return "", &Fault{Err: fmt.Errorf("%s: %w", a.from.TokenFile, err)}
		}
		return checkToken(a.from.TokenFile+": "+a.TokenFile, string(text))
	}
	token, _, err := a.login.Token(ctx)
	if err != nil {
		return "", &Fault{Err: fmt.Errorf("%s: %w", a.from.login, err), Passing: !errors.Is(err, oidclogin.ErrNoLogin)}
	}
	return token, nil
}

// checkToken returns the token of a text, without the space around it. It does not print a
// text that is none, because that may be another secret.
func checkToken(place, text string) (string, error) {
	token := strings.TrimSpace(text)
	strange := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if token == "" {
		return "", &Fault{Err: fmt.Errorf("%s is empty: it must have one line with a token", place)}
	}
	if strange >= 0 {
		return "", &Fault{Err: fmt.Errorf("%s has no token: it must have one line with a token, without blanks", place)}
	}
	return token, nil
}
