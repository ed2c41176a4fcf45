package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/pilot-api/pilot-api/explain"
)

// Whose says which proxy is looked at: its whole node id, and, of one that the
// server does not know, the labels of its workload.
type Whose struct {
	Node   string
	Labels string // app=web,version=v1
}

// ProxyConfig is what a proxy is told.
type ProxyConfig struct {
	Node     string `json:"node"`
	Revision int64  `json:"revision"` // of the store that it follows from
	// Known: the proxy has asked the server that answered.
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

// Config is what a proxy is told of one type, or of all. What was written before
// the question is in the answer.
func (c *Client) Config(ctx context.Context, of Whose, configType string) (*ProxyConfig, error) {
	var found ProxyConfig
	return &found, c.inspect(ctx, of, "config/"+configType, url.Values{}, &found)
}

// Summary is what Config comes to, in tables.
func (c *Client) Summary(ctx context.Context, of Whose, configType string) (*explain.Summary, error) {
	var found explain.Summary
	return &found, c.inspect(ctx, of, "config/"+configType, url.Values{"summary": {"true"}}, &found)
}

// Explain asks what becomes of a request by a proxy's configuration. Headers are
// such as "end-user: jason".
func (c *Client) Explain(ctx context.Context, by Whose, method, target string, headers []string) (*explain.Explanation, error) {
	var found explain.Explanation
	return &found, c.inspect(ctx, by, "route", url.Values{"url": {target}, "method": {method}, "header": headers}, &found)
}

func (c *Client) inspect(ctx context.Context, of Whose, path string, query url.Values, into any) error {
	if of.Labels != "" {
		query.Set("labels", of.Labels)
	}
	return c.ask(ctx, registry+"proxies/"+url.PathEscape(of.Node)+"/"+path, query, into)
}
