package client

import (
	"context"

	"github.com/pilot-api/pilot-api/diag"
)

// Problems are what the server's compiled configuration could not honour, and
// the revision of the store that it was compiled from.
type Problems struct {
	Revision int64     `json:"revision"`
	Problems diag.List `json:"problems"`
}

// Problems asks for what was found when the objects were compiled, all
// together and for each proxy. The server answers once all that was written
// before is compiled, and fails when that takes more than some seconds.
func (c *Client) Problems(ctx context.Context) (*Problems, error) {
	var found Problems
	if err := c.ask(ctx, "/debug/problems", nil, &found); err != nil {
		return nil, err
	}
	return &found, nil
}
