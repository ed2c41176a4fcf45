package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Proxy is a proxy that is connected to one of the servers, or polled it recently.
type Proxy struct {
	Node           string    `json:"node"`
	Namespace      string    `json:"namespace,omitempty"` // that the proxy states
	Role           string    `json:"role"`
	Transport      string    `json:"transport"` // delta, ads, grpc, rest or v1
	EnvoyVersion   string    `json:"envoyVersion,omitempty"`
	Address        string    `json:"address,omitempty"`
	Replica        string    `json:"replica,omitempty"`
	ConnectedSince time.Time `json:"connectedSince"`
	// State is Disconnected for a proxy that was connected and is not now, else empty.
	State    string     `json:"state,omitempty"`
	LastSeen *time.Time `json:"lastSeen,omitempty"` // of a disconnected one
	// Lost means that a disconnected proxy did not end its connection itself. It may still
	// run.
	Lost bool `json:"lost,omitempty"`
	// Revision is the store revision that the proxy runs, 0 while it is unknown, and always
	// over v1.
	Revision int64 `json:"revision"`
	// FetchedRevision is the revision that a v1 proxy has fetched.
	FetchedRevision int64                `json:"fetchedRevision,omitempty"`
	Types           map[string]ProxyType `json:"types"` // by explain.Types
}

// ProxyType is the sync state of a proxy for one type of its configuration.
type ProxyType struct {
	State   string `json:"state"` // SYNCED, SENT, STALE, REJECTED or FETCHED
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // the proxy's words, or what it does not ask for
}

// Disconnected is the State of a proxy that was connected and is not now.
const Disconnected = "DISCONNECTED"

// Proxies returns the proxies that are connected to any replica, sorted by node. If a
// replica does not answer, its proxies are missing and the server sends a warning. A caller
// with the right to list proxies only in some namespaces gets those, and a warning.
func (c *Client) Proxies(ctx context.Context) ([]Proxy, error) {
	return c.proxies(ctx, "", nil)
}

// AllProxies returns Proxies, and those that were connected and are not now, as long as
// the server keeps them.
func (c *Client) AllProxies(ctx context.Context) ([]Proxy, error) {
	return c.proxies(ctx, "", url.Values{"disconnected": {"true"}})
}

// Proxy returns the entries of one node: usually one, several if it has several
// connections.
func (c *Client) Proxy(ctx context.Context, node string) ([]Proxy, error) {
	return c.proxies(ctx, "/"+url.PathEscape(node), nil)
}

// ProxiesOf returns the proxies that an object concerns, because their configuration
// contains it.
func (c *Client) ProxiesOf(ctx context.Context, key schema.Key) ([]Proxy, error) {
	return c.proxies(ctx, "", objectQuery(key))
}

// AllProxiesOf is ProxiesOf with the disconnected proxies, even if their configuration is
// unknown.
func (c *Client) AllProxiesOf(ctx context.Context, key schema.Key) ([]Proxy, error) {
	query := objectQuery(key)
	query.Set("disconnected", "true")
	return c.proxies(ctx, "", query)
}

func (c *Client) proxies(ctx context.Context, path string, query url.Values) ([]Proxy, error) {
	var found []Proxy
	if err := c.ask(ctx, registry+"proxies"+path, query, &found, func() error { return areProxies(found) }); err != nil {
		return nil, err
	}
	return found, nil
}

func areProxies(found []Proxy) error {
	if found == nil {
		return errors.New("it is no list")
	}
	for i, p := range found {
		if p.Node == "" {
			return fmt.Errorf("proxy %d has no node", i)
		}
	}
	return nil
}
