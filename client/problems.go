package client

import (
	"context"
	"net/url"

	"github.com/pilot-api/pilot-api/diag"
)

// Problems are the problems of the server's compiled configuration, and the store revision
// that it was compiled from.
type Problems struct {
	Revision int64     `json:"revision"`
	Problems diag.List `json:"problems"`
	// Limited is true if the problems of namespaces that the caller may not see, and those of
	// the whole mesh, are left out.
	Limited bool `json:"limited,omitempty"`
	// NotLookedAt is the number of kinds of proxies that ProblemsInV1 left out.
	NotLookedAt int `json:"notLookedAt,omitempty"`
}

// Problems returns the problems that the compilation of the objects found, in general and
// for each proxy. The server answers when it has compiled everything that was written
// before the call. The call fails if that takes more than some seconds.
func (c *Client) Problems(ctx context.Context) (*Problems, error) {
	return c.problems(ctx, nil)
}

// ProblemsIn returns the Problems of the objects in one namespace.
func (c *Client) ProblemsIn(ctx context.Context, namespace string) (*Problems, error) {
	return c.problems(ctx, url.Values{"namespace": {namespace}})
}

// ProblemsInV1 returns Problems and what Envoys of the v1 API would lose, even if there
// are no such Envoys. The server compiles the whole mesh for it, for one request at a
// time.
func (c *Client) ProblemsInV1(ctx context.Context) (*Problems, error) { return c.problems(ctx, inV1()) }

// inV1 returns the query that adds what Envoys of the v1 API would lose.
func inV1() url.Values { return url.Values{"api": {"v1"}} }

func (c *Client) problems(ctx context.Context, q url.Values) (*Problems, error) {
	var found Problems
	if err := c.ask(ctx, "/debug/problems", q, &found); err != nil {
		return nil, err
	}
	return &found, nil
}
