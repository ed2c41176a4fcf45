package client

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Options of a Client. The zero value is usable.
type Options struct {
	// HTTPClient sends the requests; nil means one of our own. It must have
	// no Timeout, which would end watches too.
	HTTPClient *http.Client
	// Timeout bounds every request but a watch; 0 leaves it to the context.
	Timeout time.Duration
	// UserAgent names the program in the server's log.
	UserAgent string
	// Warn is told the text of every warning that the server sends with an
	// answer (HTTP Warning, code 299). It may be called from several
	// goroutines. Nil drops them.
	Warn func(text string)
	// DryRun makes the server check every write, and answer what it would
	// have done, without doing it.
	DryRun bool
	// Retries is how often a request is sent again that the server did not take,
	// 429 or 503 with a Retry-After: not before that time, with more between two
	// tries than between those before, and not when the context ends. 0 is for
	// those who would rather hear of it.
	Retries int
}

// Client is a store behind a pilot-api server. All methods are safe for
// concurrent use.
type Client struct {
	base string // without a slash at the end
	opts Options
	// pause waits, and is false when the context has ended.
	pause func(context.Context, time.Duration) bool
}

var _ store.Interface = (*Client)(nil)

// New makes a client of the server at a URL such as http://127.0.0.1:8080. It
// sends nothing. The error tells what is wrong with the URL.
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
	return &Client{base: strings.TrimRight(serverURL, "/"), opts: opts, pause: pause}, nil
}

// Server is the URL of the server, without a slash at the end.
func (c *Client) Server() string { return c.base }

// transport keeps enough idle connections for a program that asks from several
// goroutines; net/http keeps two for a host. On the same machine nothing is
// compressed: that takes longer than to send it.
func transport(host string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	ip, err := netip.ParseAddr(host)
	t.DisableCompression = host == "localhost" || err == nil && ip.IsLoopback()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

// url of a kind's objects: of all namespaces when namespace is "", of one
// object when name is given.
func (c *Client) url(kind *schema.Kind, namespace, name string, query url.Values) string {
	parts := []string{c.base, "apis", kind.Group, kind.Version}
	if namespace != "" {
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
