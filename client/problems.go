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
	// NotLookedAt is the number of kinds of proxies that were left out with ProblemsOptions.InV1.
	NotLookedAt int `json:"notLookedAt,omitempty"`
}

// ProblemsOptions select problems. The zero value selects those of all objects.
type ProblemsOptions struct {
	// Namespace selects the problems of the objects in one namespace; "" means all.
	Namespace string
	// InV1 adds the features that Envoys of the v1 API would lose, even if there are no such
	// Envoys. The server compiles the whole mesh for this, for one request at a time.
	InV1 bool
}

// Problems returns the problems that the compilation of the objects found, in general and
// for each proxy. The server answers when it has compiled everything that was written
// before the call. The call fails if that takes more than some seconds.
func (c *Client) Problems(ctx context.Context, opts ProblemsOptions) (*Problems, error) {
	q := url.Values{}
	if opts.InV1 {
		q = inV1()
	}
	if opts.Namespace != "" {
		q.Set("namespace", opts.Namespace)
	}
	var found Problems
	if err := c.ask(ctx, "/debug/problems", q, &found, func() error { return isReport(found.Revision) }); err != nil {
		return nil, err
	}
	return &found, nil
}

// inV1 returns the query that adds the losses of Envoys of the v1 API.
func inV1() url.Values { return url.Values{"api": {"v1"}} }
