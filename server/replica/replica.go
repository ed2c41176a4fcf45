// Package replica asks the other replicas of the server for their own state.
package replica

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/credential"
)

// Peers are the replicas that serve the same store.
type Peers interface {
	// Self returns the name of this replica, which is unique.
	Self() string
	// Others returns all other replicas, including missing ones.
	Others(ctx context.Context) ([]Replica, error)
	// CutOff reports whether the other replicas consider this one missing, and since when.
	CutOff() (since time.Time, is bool)
}

// Replica is another replica. Missing is the time since which it has been missing, or zero.
// A missing replica may still answer if it has only lost its connection to the store.
type Replica struct {
	Name, URL string
	Missing   time.Time
	// Via sends requests to the replica. Nil means a Client without credentials.
	Via *Client
}

// Header names the replica that a request is for. Another replica at its
// address refuses the request.
const Header = "Pilot-Replica"

// Timeout is how long a request waits for another replica.
const Timeout = 2 * time.Second

// Client sends requests to replicas. It connects directly, and ignores the HTTP proxies of
// the environment, which are for other destinations.
type Client struct {
	http http.Client
	sign func(*http.Request)
}

// NewClient returns a Client that verifies replicas by the authorities in caFile, or by
// those of the system if it is "". sign adds a proof of this replica to a request.
func NewClient(caFile string, sign func(*http.Request)) (*Client, error) {
	authorities, err := credential.Authorities(caFile)
	if err != nil {
		return nil, err
	}
	return newClient(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, sign), nil
}

func newClient(settings *tls.Config, sign func(*http.Request)) *Client {
	return &Client{http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: Timeout}).DialContext, IdleConnTimeout: time.Minute, TLSClientConfig: settings,
	}}, sign}
}

// unproved is for replicas without a Client of their own.
var unproved = newClient(nil, func(*http.Request) {})

// maxAnswer bounds the answer of another replica, in bytes: 50,000 proxies of 1
// KiB.
const maxAnswer = 64 << 20

// Error is an answer that cannot be used.
type Error struct {
	code int
	text string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %.200s", e.code, http.StatusText(e.code), e.text)
}

// IsWithout reports whether a replica answers that it has nothing of that name. It is false
// for a replica that does not know the path.
func (e *Error) IsWithout(name string) bool {
	var status metav1.Status
	return e.code == http.StatusNotFound && json.Unmarshal([]byte(e.text), &status) == nil && status.Details != nil && status.Details.Name == name
}

// Silence describes why a replica does not answer.
func (r Replica) Silence() string {
	if r.Missing.IsZero() {
		return "replica " + r.Name + " does not answer"
	}
	return "replica " + r.Name + " is missing since " + r.Missing.Format(time.TimeOnly) + ", and did not leave"
}

// Ask asks a replica for its own state at path, whose elements are used unescaped. If the
// answer with this etag is still current, Ask decodes nothing and returns etag. etag may be
// "".
func Ask(ctx context.Context, of Replica, path []string, q url.Values, etag string, into any) (newer string, err error) {
	req, err := newRequest(ctx, http.MethodGet, of, path, q, nil)
	if err != nil {
		return "", err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return of.client().do(req, into)
}

func (r Replica) client() *Client { return cmp.Or(r.Via, unproved) }

// Post sends text to a replica, which handles the request for itself only.
func Post(ctx context.Context, of Replica, path []string, q url.Values, text []byte, media string, into any) error {
	req, err := newRequest(ctx, http.MethodPost, of, path, q, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	_, err = of.client().do(req, into)
	return err
}

func newRequest(ctx context.Context, method string, of Replica, path []string, q url.Values, body io.Reader) (*http.Request, error) {
	at, err := url.JoinPath(of.URL, path...)
	if err != nil {
		return nil, err
	}
	local := maps.Clone(q)
	local.Set("local", "true")
	req, err := http.NewRequestWithContext(ctx, method, at+"?"+local.Encode(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(Header, of.Name)
	return req, nil
}

// do sends req and decodes the answer, unless the answer under the
// request's ETag is still current.
func (c *Client) do(req *http.Request, into any) (etag string, err error) {
	c.sign(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotModified:
		return req.Header.Get("If-None-Match"), nil
	case resp.StatusCode != http.StatusOK:
		return "", &Error{resp.StatusCode, string(body)}
	}
	return resp.Header.Get("ETag"), json.Unmarshal(body, into)
}
