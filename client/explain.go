package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"

	"github.com/pilot-api/pilot-api/explain"
)

// ProxyRef selects a proxy by its whole node id. For a proxy that the server does not know,
// it can also state the labels of the workload.
type ProxyRef struct {
	Node   string
	Labels string // app=web,version=v1
}

// ProxyConfig is the configuration of a proxy as the server sends it.
type ProxyConfig struct {
	Node     string `json:"node"`
	Revision int64  `json:"revision"` // of the store that the configuration is compiled from
	// Known reports whether the proxy has contacted the server that answered.
	Known     bool            `json:"known"`
	Resources []ProxyResource `json:"resources"`
}

// ProxyResource is one resource of a configuration.
type ProxyResource struct {
	Type     string          `json:"type"` // one of explain.Types
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Resource json.RawMessage `json:"resource"` // Envoy's v3 message
}

// Config returns the configuration of a proxy, of one type or of all types. It reflects
// everything that was written before the call.
func (c *Client) Config(ctx context.Context, of ProxyRef, configType string) (*ProxyConfig, error) {
	var found ProxyConfig
	check := func() error { return isInspection(found.Node, found.Revision) }
	err := c.inspect(ctx, of, "config/"+configType, url.Values{}, &found, check)
	return &found, err
}

// Summary returns the content of Config in tables.
func (c *Client) Summary(ctx context.Context, of ProxyRef, configType string) (*explain.Summary, error) {
	var found struct {
		inspected
		explain.Summary
	}
	err := c.inspect(ctx, of, "config/"+configType, url.Values{"summary": {"true"}}, &found, found.check)
	return &found.Summary, err
}

// Explain returns what a proxy's configuration does with a request. Headers have the
// form "end-user: jason".
func (c *Client) Explain(ctx context.Context, by ProxyRef, method, target string, headers []string) (*explain.Explanation, error) {
	var found struct {
		inspected
		explain.Explanation
	}
	query := url.Values{"url": {target}, "method": {method}, "header": headers}
	err := c.inspect(ctx, by, "route", query, &found, found.check)
	return &found.Explanation, err
}

// inspected is the head of every answer about the configuration of a proxy.
type inspected struct {
	Node     string `json:"node"`
	Revision int64  `json:"revision"`
}

func (i *inspected) check() error { return isInspection(i.Node, i.Revision) }

func isInspection(node string, revision int64) error {
	return cmp.Or(member("node", node != ""), isReport(revision))
}

func (c *Client) inspect(ctx context.Context, of ProxyRef, path string, query url.Values, into any, check func() error) error {
	if of.Labels != "" {
		query.Set("labels", of.Labels)
	}
	return c.ask(ctx, registry+"proxies/"+url.PathEscape(of.Node)+"/"+path, query, into, check)
}
