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
	// Proxies is the number of proxies that were compared, and NotLookedAt the number of
	// the others. Missing lists the replicas that did not answer; their proxies are
	// unknown.
	Proxies     int      `json:"proxies"`
	NotLookedAt int      `json:"notLookedAt"`
	Missing     []string `json:"missing"`
	// Changes are sorted by type and name. Omitted is the number of further changes.
	Changes []ResourceChange `json:"changes"`
	Omitted int              `json:"omitted"`
	// Problems are the problems that the objects would cause.
	Problems diag.List `json:"problems"`
	// Solved are the present problems that the objects would solve.
	Solved diag.List `json:"solved"`
	// NotLookedAtInV1 is the number of kinds of proxies that PreviewInV1 left out. Neither
	// list covers their losses.
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

// Preview returns the changes that the objects of a text would make. The text is YAML
// documents; those without a namespace get the given one. Preview stores nothing.
func (c *Client) Preview(ctx context.Context, text []byte, namespace string) (*Preview, error) {
	return c.preview(ctx, text, namespace, url.Values{})
}

// PreviewWithout is Preview as if some stored objects were deleted. The text must not
// contain them.
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

// PreviewInV1 is a Preview whose problems include those of ProblemsOptions.InV1.
func (c *Client) PreviewInV1(ctx context.Context, text []byte, namespace string) (*Preview, error) {
	return c.preview(ctx, text, namespace, inV1())
}

func (c *Client) preview(ctx context.Context, text []byte, namespace string, q url.Values) (*Preview, error) {
	q.Set("namespace", namespace)
	var found Preview
	r := request{method: http.MethodPost, url: c.at(registry+"preview", q), body: text, contentType: yamlType}
	if err := c.exchange(ctx, r, &found, func() error { return isReport(found.Revision) }); err != nil {
		return nil, err
	}
	return &found, nil
}
