package client

import (
	"context"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// References are what an object names, and what names it: in the mesh as the server
// compiled it, with everything that was written before the question.
func (c *Client) References(ctx context.Context, key schema.Key) (*diag.References, error) {
	var found diag.References
	if err := c.ask(ctx, registry+"references", objectQuery(key), &found); err != nil {
		return nil, err
	}
	return &found, nil
}
