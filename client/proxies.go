package client

import (
	"context"
	"net/url"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Proxy is what the servers know of a proxy that is connected to one of them, or
// polled it lately.
type Proxy struct {
	Node           string    `json:"node"`
	Role           string    `json:"role"`
	Transport      string    `json:"transport"` // delta, ads, grpc, rest or v1
	EnvoyVersion   string    `json:"envoyVersion,omitempty"`
	Address        string    `json:"address,omitempty"`
	Replica        string    `json:"replica,omitempty"`
	ConnectedSince time.Time `json:"connectedSince"`
	// Revision of the store that the proxy runs, 0 while none is known.
	Revision int64                `json:"revision"`
	Types    map[string]ProxyType `json:"types"` // by explain.Types
}

// ProxyType is where a proxy stands with one type of its configuration.
type ProxyType struct {
	State   string `json:"state"` // SYNCED, SENT, STALE, REJECTED or FETCHED
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // the proxy's words
}

// Proxies are those that are connected to any replica, by node. What a replica
// that does not answer knows is missing, and a warning says so.
func (c *Client) Proxies(ctx context.Context) ([]Proxy, error) {
	return c.proxies(ctx, "", nil)
}

// Proxy is one node's, mostly one; several where it has several connections.
func (c *Client) Proxy(ctx context.Context, node string) ([]Proxy, error) {
	return c.proxies(ctx, "/"+url.PathEscape(node), nil)
}

// ProxiesOf are those that an object concerns: it is in what they are told.
func (c *Client) ProxiesOf(ctx context.Context, key schema.Key) ([]Proxy, error) {
	return c.proxies(ctx, "", objectQuery(key))
}

func (c *Client) proxies(ctx context.Context, path string, query url.Values) ([]Proxy, error) {
	var found []Proxy
	if err := c.ask(ctx, registry+"proxies"+path, query, &found); err != nil {
		return nil, err
	}
	return found, nil
}
