package client

import (
	"context"
	"net/url"

	"github.com/pilot-api/pilot-api/diag"
)

// Problems are what the server's compiled configuration could not honour, and
// the revision of the store that it was compiled from.
type Problems struct {
	Revision int64     `json:"revision"`
	Problems diag.List `json:"problems"`
	// NotLookedAt is how many kinds of proxies ProblemsInV1 has left out.
	NotLookedAt int `json:"notLookedAt,omitempty"`
}

// Problems asks for what was found when the objects were compiled, all
// together and for each proxy. The server answers once all that was written
// before is compiled, and fails when that takes more than some seconds.
func (c *Client) Problems(ctx context.Context) (*Problems, error) {
	return c.problems(ctx, nil)
}

// ProblemsInV1 are Problems, and what Envoys of the v1 API would lose, whether or not
// there are any. The server compiles the whole mesh for it, for one question at a time.
func (c *Client) ProblemsInV1(ctx context.Context) (*Problems, error) { return c.problems(ctx, inV1()) }

// inV1 asks also what Envoys of the v1 API would lose.
func inV1() url.Values { return url.Values{"api": {"v1"}} }

func (c *Client) problems(ctx context.Context, q url.Values) (*Problems, error) {
	var found Problems
	if err := c.ask(ctx, "/debug/problems", q, &found); err != nil {
		return nil, err
	}
	return &found, nil
}
