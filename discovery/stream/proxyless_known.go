package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v3"
)

// A client of gRPC chooses by new routes before its balancer knows the clusters that
// they are the first to lead to. So it is first sent the routes that it has, with a
// further one to the new clusters that takes no call, and the new routes when it has the
// clusters. Old clusters stay in such a route for a while, so that a rule that goes back
// does not meet a client that is just letting go of them
// (docs/decisions/022-proxyless-grpc.md).

// nextTables are the tables that the client is to be sent next, of those that it
// subscribes to.
func (st *Stream) nextTables(target *compiled.Streamed) *xds.Set {
	return st.tables(target, func(sent, to *xds.Resource) *xds.Resource { return st.nextTable(sent, to, target) })
}

// settledTables are those that it is to have in the end.
func (st *Stream) settledTables(target *compiled.Streamed) *xds.Set {
	return st.tables(target, func(sent, to *xds.Resource) *xds.Resource {
		if nack.Same(sent.Table(), to) {
			return sent
		}
		return to
	})
}

// tables are those of the target with what choose has in place of the ones that differ
// from what was sent.
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

// nextTable is what leads from a table that was sent to another one. The waits end: a
// client that does not ask for a cluster holds up no rule.
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
		return to // There was no call that could fail.
	case len(beyond(leads, sent.Knows())) > 0:
		return sent.Table().WithKnown(beyond(leads, led))
	case !st.hasClusters(leads, target) && st.within(st.routed):
		return sent
	}
	return to.WithKnown(beyond(led, leads))
}

// hasClusters reports whether the client has clusters, and their endpoints. Clusters that
// do not exist are not waited for.
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

// has reports whether the client subscribed to a name and acked what it was sent.
func (t *subscription) has(name string) bool {
	return t.Wants(name) && !t.pending.has(name) && !slices.ContainsFunc(t.inFlight, func(s *sentResponse) bool {
		return slices.ContainsFunc(s.Resources, func(r *xds.Resource) bool { return r.Name == name })
	})
}

// beyond are the names that are not among others.
func beyond(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
