package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/diag"
)

// Preview is what some objects would change in what connected proxies are told.
type Preview struct {
	Revision int64 `json:"revision"` // compared with
	// Proxies are those that were looked at, NotLookedAt those that were not; Missing
	// says which replicas, with proxies of which nothing is known, did not answer.
	Proxies     int      `json:"proxies"`
	NotLookedAt int      `json:"notLookedAt"`
	Missing     []string `json:"missing"`
	// Changes by type and name; Omitted is how many there are beside.
	Changes []ResourceChange `json:"changes"`
	Omitted int              `json:"omitted"`
	// Problems are those that there would be, and are not now.
	Problems diag.List `json:"problems"`
	// Solved are those that there are now, and would not be.
	Solved diag.List `json:"solved"`
	// NotLookedAtInV1 is how many kinds of proxies PreviewInV1 has left out: what they
	// lose is in none of the two.
	NotLookedAtInV1 int `json:"notLookedAtInV1"`
}

// ResourceChange is one resource as some proxies have it, and as they would.
type ResourceChange struct {
	Type string `json:"type"` // one of explain.Types
	Name string `json:"name"`
	// Before and After are Envoy's v3 messages; empty for none.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Proxies that share it, and the nodes of some.
	Proxies int      `json:"proxies"`
	Nodes   []string `json:"nodes"`
}

// Preview asks what the objects of a text would change, documents of YAML with a
// namespace for those that say none. Nothing is stored.
func (c *Client) Preview(ctx context.Context, text []byte, namespace string) (*Preview, error) {
	return c.preview(ctx, text, namespace, url.Values{})
}

// PreviewInV1 is a Preview whose problems are also what Envoys of the v1 API would lose,
// as ProblemsInV1 has it.
func (c *Client) PreviewInV1(ctx context.Context, text []byte, namespace string) (*Preview, error) {
	return c.preview(ctx, text, namespace, inV1())
}

func (c *Client) preview(ctx context.Context, text []byte, namespace string, q url.Values) (*Preview, error) {
	q.Set("namespace", namespace)
	var found Preview
	if err := c.exchange(ctx, request{method: http.MethodPost, url: c.at(registry+"preview", q), body: text, contentType: yamlType}, &found); err != nil {
		return nil, err
	}
	return &found, nil
}
