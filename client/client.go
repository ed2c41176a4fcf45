package client

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Client. The zero value is usable.
type Options struct {
	// HTTPClient sends the requests; nil means a client of this package. It must have
	// no Timeout, which would end watches too.
	HTTPClient *http.Client
	// Timeout bounds every request except a watch; 0 leaves it to the context.
	Timeout time.Duration
	// UserAgent names the program in the server's log.
	UserAgent string
	// Warn is called with the text of every warning that the server sends with an
	// answer (HTTP Warning, code 299). It may be called from several goroutines. If it
	// is nil, warnings are dropped.
	Warn func(text string)
	// DryRun makes the server check every write and return the result without storing
	// it.
	DryRun bool
	// Retries is how often the client repeats a request that the server answered with 429
	// or 503 and a Retry-After. The client waits at least that time, longer with each try,
	// and stops when the context ends. 0 returns the error at once.
	Retries int
	// LastKnown changes reads of the newest state while the server's store does not answer.
	// Instead of failing, such a read returns the last state that the server knows. Warn
	// then gets a text with store.LastKnown in it, once for each Client.
	LastKnown bool
}

// Client is a store on a pilot-api server. All methods are safe for concurrent use.
type Client struct {
	base string // without a trailing slash
	opts Options
	// pause waits and returns false if the context has ended.
	pause func(context.Context, time.Duration) bool
	// maxWeight bounds the memory of an answer.
	maxWeight int
	// outdated is true once Warn was told of the last known state.
	outdated atomic.Bool
}

var _ store.Interface = (*Client)(nil)

// New returns a client of the server at a URL such as http://127.0.0.1:8080. It sends
// nothing. It returns an error if the URL is invalid.
func New(serverURL string, opts Options) (*Client, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return nil, fmt.Errorf("server URL: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server URL %q: want http://HOST:PORT or https://HOST:PORT", serverURL)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server URL %q: must have no query and no fragment", serverURL)
	}
	if opts.HTTPClient == nil {
		opts.HTTPClient = &http.Client{Transport: transport(u.Hostname())}
	}
	if opts.Warn == nil {
		opts.Warn = func(string) {}
	}
	return &Client{base: strings.TrimRight(serverURL, "/"), opts: opts, pause: pause, maxWeight: maxWeight}, nil
}

// Server returns the URL of the server, without a trailing slash.
func (c *Client) Server() string { return c.base }

// transport returns a transport that keeps enough idle connections for a program with
// several goroutines; net/http keeps two per host. On the same machine nothing is
// compressed, because compressing takes longer than sending.
func transport(host string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	ip, err := netip.ParseAddr(host)
	t.DisableCompression = host == "localhost" || err == nil && ip.IsLoopback()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

// url returns the URL of a kind's objects: in all namespaces if namespace is "", and of
// one object if name is set.
func (c *Client) url(kind *schema.Kind, namespace, name string, query url.Values) string {
	parts := []string{c.base + kind.Root(kind.Version)}
	if namespace != "" && !kind.Cluster {
		parts = append(parts, "namespaces", url.PathEscape(namespace))
	}
	parts = append(parts, kind.Plural)
	if name != "" {
		parts = append(parts, url.PathEscape(name))
	}
	path := strings.Join(parts, "/")
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
