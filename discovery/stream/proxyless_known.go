package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v3"
)

// A client of gRPC chooses by new routes before its balancer knows their new clusters. So
// it is first sent the routes that it has, and one more route to the new clusters that
// takes no call. When it has these clusters, it is sent the new routes. Old clusters stay
// in such a route for a while. So if a rule goes back, the client is not just dropping the
// clusters that it needs again (docs/decisions/022-proxyless-grpc.md).

// nextTables returns the tables to send next, of those that the client subscribes to.
func (st *Stream) nextTables(target *compiled.Streamed) *xds.Set {
	return st.tables(target, func(sent, to *xds.Resource) *xds.Resource { return st.nextTable(sent, to, target) })
}

// settledTables returns the tables that the client should have in the end.
func (st *Stream) settledTables(target *compiled.Streamed) *xds.Set {
	return st.tables(target, func(sent, to *xds.Resource) *xds.Resource {
		if nack.Same(sent.Table(), to) {
			return sent
		}
		return to
	})
}

// tables returns the tables of the target. For each that differs from what was sent, choose
// returns what to send.
func (st *Stream) tables(target *compiled.Streamed, choose func(sent, to *xds.Resource) *xds.Resource) *xds.Set {
	t := &st.routes
	var chosen []*xds.Resource
	differ := false
	for name := range t.named.own() {
		to, sent := target.TableNamed(name), t.sent.Named(name)
		if to == nil {
			continue
		}
		if sent != nil && !nack.Same(sent, to) && !t.pending.has(name) && t.nacks.None() {
			r := choose(sent, to)
			differ = differ || r != to
			to = r
		}
		chosen = append(chosen, to)
	}
	if !differ {
		return target.Routes
	}
	return xds.NewSet(xds.RouteType, chosen)
}

// nextTable returns the next step from a table that was sent to another one. Each wait
// ends, so a client that does not ask for a cluster holds up no rule.
func (st *Stream) nextTable(sent, to *xds.Resource, target *compiled.Streamed) *xds.Resource {
	if nack.Same(sent.Table(), to) {
		if st.within(st.routed) {
			return sent
		}
		return to
	}
	leads, led := to.LeadsTo(), sent.Table().LeadsTo()
	switch {
	case len(led) == 0:
		return to // No call could fail.
	case len(beyond(leads, sent.Knows())) > 0:
		return sent.Table().WithKnown(beyond(leads, led))
	case !st.hasClusters(leads, target) && st.within(st.routed):
		return sent
	}
	return to.WithKnown(beyond(led, leads))
}

// hasClusters reports whether the client has some clusters and their endpoints. Clusters
// that do not exist do not count.
func (st *Stream) hasClusters(names []string, target *compiled.Streamed) bool {
	for _, name := range names {
		c := target.Clusters.Named(name)
		if c == nil {
			continue
		}
		asks := v3.ProxylessAsks(c.Shell.Message())
		if !st.clusters.has(name) || asks != "" && !st.endpoints.has(asks) {
			return false
		}
	}
	return true
}

// has reports whether the client subscribes to a name and acked what it was sent of it.
func (t *subscription) has(name string) bool {
	return t.Wants(name) && !t.pending.has(name) && !slices.ContainsFunc(t.inFlight, func(s *sentResponse) bool {
		return slices.ContainsFunc(s.Resources, func(r *xds.Resource) bool { return r.Name == name })
	})
}

// beyond returns the names that are not among others.
func beyond(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
