package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
)

// question is one request; what it leaves out is of the front service.
type question struct {
	url    string
	method string // GET if it is "".
	header http.Header
	to     string // Where the connection goes, in place of the host of the URL.
	client string // Whose certificate is shown, if any.
}

// reply is what came of it. Of a request that got no answer err says why.
type reply struct {
	status int
	header http.Header
	echo   Echo
	body   string
	err    error
}

func (r reply) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return http.StatusText(r.status) + " " + r.body
}

// inward asks the router, at a port that a Gateway opens.
func (w *taskWorld) inward(t *testing.T, port string, q question) reply {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", w.here.Replace(port))
	return w.asked(t, q, func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	})
}

// outward asks as the front service does whose connections are redirected.
func (w *taskWorld) outward(t *testing.T, q question) reply {
	t.Helper()
	return w.asked(t, q, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialRedirected(ctx, w.moved.Replace("127.0.0.1:15001"), w.here.Replace(q.to))
	})
}

func (w *taskWorld) asked(t *testing.T, q question, dial func(context.Context, string, string) (net.Conn, error)) reply {
	t.Helper()
	secured := &tls.Config{RootCAs: x509.NewCertPool()}
	secured.RootCAs.AddCert(w.authority.Certificate)
	if q.client != "" {
		secured.Certificates = []tls.Certificate{w.certificate(t, q.client)}
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: secured, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), q.method, q.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	return replied(asking(transport).Do(req))
}

func replied(resp *http.Response, err error) reply {
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
	if r.status == http.StatusOK && err == nil {
		r.err = json.Unmarshal(body, &r.echo)
	}
	return r
}

// from holds for an answer of the backend to the path.
func (r reply) from(t *testing.T, want Echo) {
	t.Helper()
	if r.err != nil || r.echo != want {
		t.Errorf("%v, want an answer of %+v", r, want)
	}
}

// has holds for an answer with the status.
func (r reply) has(t *testing.T, status int) {
	t.Helper()
	if r.err != nil || r.status != status {
		t.Errorf("%v, want %d", r, status)
	}
}

// refused holds when there was no answer.
func (r reply) refused(t *testing.T) {
	t.Helper()
	if r.err == nil {
		t.Errorf("%v, want no answer", r)
	}
}
