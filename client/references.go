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
	var found struct {
		Revision int64 `json:"revision"`
		diag.References
	}
	if err := c.ask(ctx, registry+"references", objectQuery(key), &found, func() error { return isReport(found.Revision) }); err != nil {
		return nil, err
	}
	return &found.References, nil
}
