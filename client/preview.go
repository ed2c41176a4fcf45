package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Preview is the change that some objects would make to the configuration of connected
// proxies.
type Preview struct {
	Revision int64 `json:"revision"` // compared with
	// Proxies is the number of proxies that were compared, NotLookedAt the number of
	// those that were not. Missing lists the replicas that did not answer; their
	// proxies are unknown.
	Proxies     int      `json:"proxies"`
	NotLookedAt int      `json:"notLookedAt"`
	Missing     []string `json:"missing"`
	// Changes are sorted by type and name. Omitted is the number of further changes.
	Changes []ResourceChange `json:"changes"`
	Omitted int              `json:"omitted"`
	// Problems are the new problems that there would be.
	Problems diag.List `json:"problems"`
	// Solved are the present problems that would be gone.
	Solved diag.List `json:"solved"`
	// NotLookedAtInV1 is the number of kinds of proxies that PreviewInV1 left out.
	// Neither list has what they lose.
	NotLookedAtInV1 int `json:"notLookedAtInV1"`
}

// ResourceChange is one resource as some proxies have it now and as they would have it.
type ResourceChange struct {
	Type string `json:"type"` // one of explain.Types
	Name string `json:"name"`
	// Before and After are Envoy's v3 messages; empty if there is no resource.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Proxies is the number of proxies that share the resource. Nodes has some of them.
	Proxies int      `json:"proxies"`
	Nodes   []string `json:"nodes"`
}

// Preview returns what the objects of a text would change. The text is YAML documents;
// those without a namespace get the given one. Nothing is stored.
func (c *Client) Preview(ctx context.Context, text []byte, namespace string) (*Preview, error) {
	return c.preview(ctx, text, namespace, url.Values{})
}

// PreviewWithout is Preview without some stored objects, as if they were deleted. The text
// must not have them.
func (c *Client) PreviewWithout(ctx context.Context, text []byte, namespace string, without []schema.Key) (*Preview, error) {
	if len(without) == 0 {
		return c.Preview(ctx, text, namespace)
	}
	refs := make([]string, len(without))
	for i, key := range without {
		refs[i] = key.Kind + "/" + key.Namespace + "/" + key.Name
	}
	return c.preview(ctx, text, namespace, url.Values{"without": {strings.Join(refs, ",")}})
}

// PreviewInV1 is Preview whose problems include what Envoys of the v1 API would lose,
// as in ProblemsInV1.
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
