package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion asks which version of pilot-api answers.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	body, err := c.call(ctx, request{method: http.MethodGet, url: c.base + "/version"}, maxErrorAnswer)
	if err != nil {
		return nil, err
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, fmt.Errorf("decode the server's version: %w", err)
	}
	return &info, nil
}
