package client

import (
	"context"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// References returns the objects that an object refers to and those that refer to it,
// in the mesh as the server compiled it. It reflects everything that was written before
// the call.
func (c *Client) References(ctx context.Context, key schema.Key) (*diag.References, error) {
	var found diag.References
	if err := c.ask(ctx, registry+"references", objectQuery(key), &found); err != nil {
		return nil, err
	}
	return &found, nil
}
