package compiled

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Polled is the configuration that the polling proxies of a view should have, from one
// revision on: the resources of the view, and the endpoints of its clusters, which change
// independently of the view. These proxies share it. It is safe for concurrent use.
type Polled struct {
	View     *View
	Revision int64
	Since    int64        // the first revision that the one before, if any, may not show
	until    atomic.Int64 // the first revision whose endpoints may be others, 0 while its own are in force

	make      func() *xds.Set // endpoints; nil once it was called
	endpoints cached.Lazy[xds.Set]
}

// NewPolled combines a view with endpoints.
func NewPolled(v *View, endpoints *xds.Set) *Polled {
	return &Polled{View: v, make: func() *xds.Set { return endpoints }}
}

// Endpoints returns the endpoint sets of all clusters. The first call collects them.
func (p *Polled) Endpoints() *xds.Set {
	s, _ := p.endpoints.Get(func() (*xds.Set, error) {
		all := p.make()
		p.make = nil // It may keep a whole generation in memory.
		return all, nil
	})
	return s
}

// HasEndpoints reports whether any cluster has a set of endpoints of its own.
func (p *Polled) HasEndpoints() bool {
	return slices.ContainsFunc(p.View.Config.Clusters, func(c *ir.Cluster) bool { return c.Type == ir.Registry })
}

// ReplacedAt returns the first revision whose endpoints or view are others, or may be. It is 0
// while both are in force.
func (p *Polled) ReplacedAt() int64 { return earlier(p.until.Load(), p.View.Until.Load()) }

// ReplacedAt returns the first revision whose endpoints or view are others. It is 0 while both
// are in force.
func (st *Streamed) ReplacedAt() int64 { return earlier(st.Until.Load(), st.View.Until.Load()) }

// earlier returns the lower of two revisions, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// polledNow is the Polled of a view for a snapshot. A publication does not change it: the
// next poll brings it up to date.
type polledNow struct {
	mu   sync.Mutex
	last *Polled
	mesh *mesh.Snapshot // for which last is in force
}

// Polled returns the view's present configuration for proxies that poll.
func (v *View) Polled() *Polled {
	now := &v.polled
	now.mu.Lock()
	defer now.mu.Unlock()
	g := v.Encoder.Current.Load()
	all := func() *xds.Set { return endpointsOf(v.Encoder.Current.Load(), EndpointKeys(v.Config.Clusters), nil) }
	switch {
	case now.last == nil:
		now.last = &Polled{View: v, Revision: v.Revision, Since: v.Since, make: all}
	case now.mesh == g.Mesh:
		return now.last
	default:
		before := now.last
		services := g.Mesh.ServicesSince(now.mesh)
		if before.touchedBy(services) {
			now.last = &Polled{View: v, Revision: g.Mesh.Revision, Since: now.mesh.Revision + 1, make: all}
			if s := before.endpoints.Peek(); s != nil {
				now.last.make = func() *xds.Set { return movedEndpoints(s, services, g) }
			}
			// Some snapshots may have come between; in the first one it may have been.
			before.until.Store(now.mesh.Revision + 1)
		}
	}
	now.mesh = g.Mesh
	return now.last
}

// touchedBy reports whether the endpoints of clusters may be others when services changed.
func (p *Polled) touchedBy(services []mesh.ServiceChange) bool {
	if s := p.endpoints.Peek(); s != nil {
		return slices.ContainsFunc(services, func(c mesh.ServiceChange) bool {
			for range s.OfHost(keyHost(c)) {
				return true
			}
			return false
		})
	}
	if len(services) == 0 {
		return false
	}
	hosts := make(map[string]bool, len(services))
	for _, c := range services {
		hosts[keyHost(c)] = true
	}
	return slices.ContainsFunc(p.View.Config.Clusters, func(c *ir.Cluster) bool {
		return c.Type == ir.Registry && hosts[mesh.ParseServiceKey(c.EndpointKey).Hostname]
	})
}
