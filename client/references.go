package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// References are what an object names, and what names it: in the mesh as the server
// compiled it, with everything that was written before the question.
func (c *Client) References(ctx context.Context, key schema.Key) (*diag.References, error) {
	at := c.base + "/apis/registry.istio.io/v1/references?" + url.Values{"object": {key.Kind + "/" + key.Namespace + "/" + key.Name}}.Encode()
	body, err := c.call(ctx, request{method: http.MethodGet, url: at}, maxListAnswer)
	if err != nil {
		return nil, err
	}
	var found diag.References
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, fmt.Errorf("decode the server's references: %w", err)
	}
	return &found, nil
}
