package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/envoy/v3"
)

// A client of gRPC chooses by new routes before its balancer knows the clusters that
// they are the first to lead to. So it is first told the routes that it has, with a
// further one to these, which takes no call, and the new routes when it has the
// clusters. What was left stays in such a route for a while: a rule that goes back does
// not meet a client that is just letting go
// (docs/decisions/022-proxyless-grpc.md).

// knowing is a table with clusters that it leads no call to.
type knowing struct {
	table *resource
	known []string
}

// table is the one that calls are routed by.
func (r *resource) table() *resource {
	if r.knowing != nil {
		return r.knowing.table
	}
	return r
}

// leadsTo are the clusters that a table leads calls to.
func (r *resource) leadsTo() []string { return v3.ProxylessLeadsTo(r.shell.message()) }

// knows are the clusters that a client has who has the table.
func (r *resource) knows() []string {
	all := r.table().leadsTo()
	if r.knowing != nil {
		all = append(all, r.knowing.known...)
	}
	return all
}

// withKnown is a table together with clusters.
func (r *resource) withKnown(clusters []string) *resource {
	if len(clusters) == 0 {
		return r
	}
	shell, err := newFragment(v3.ProxylessKnowing(r.shell.message(), clusters))
	if err != nil {
		return r
	}
	out := newResource(r.typeURL, r.name, shell)
	out.origin, out.knowing = r.origin, &knowing{r, clusters}
	return out
}

// nextTables are the tables that the client is to be told next, of those that it asks
// for.
func (st *Stream) nextTables(target *streamed) *set {
	return st.tables(target, func(sent, to *resource) *resource { return st.nextTable(sent, to, target) })
}

// settledTables are those that it is to have in the end.
func (st *Stream) settledTables(target *streamed) *set {
	return st.tables(target, func(sent, to *resource) *resource {
		if same(sent.table(), to) {
			return sent
		}
		return to
	})
}

// tables are those of the target with what choose has in place of the ones that differ
// from what was sent.
func (st *Stream) tables(target *streamed, choose func(sent, to *resource) *resource) *set {
	t := &st.routes
	var chosen []*resource
	differ := false
	for name := range t.named.own() {
		to, sent := target.tableNamed(name), t.sent.named(name)
		if to == nil {
			continue
		}
		if sent != nil && !same(sent, to) && !t.owed.has(name) && t.refusals.none() {
			r := choose(sent, to)
			differ = differ || r != to
			to = r
		}
		chosen = append(chosen, to)
	}
	if !differ {
		return target.routes
	}
	return newSet(RouteType, chosen)
}

// nextTable is what leads from a table that was sent to another one. The waits end: a
// client that does not ask for a cluster holds up no rule.
func (st *Stream) nextTable(sent, to *resource, target *streamed) *resource {
	if same(sent.table(), to) {
		if st.within(st.routed) {
			return sent
		}
		return to
	}
	leads, led := to.leadsTo(), sent.table().leadsTo()
	switch {
	case len(led) == 0:
		return to // There was no call that could fail.
	case len(beyond(leads, sent.knows())) > 0:
		return sent.table().withKnown(beyond(leads, led))
	case !st.hasClusters(leads, target) && st.within(st.routed):
		return sent
	}
	return to.withKnown(beyond(led, leads))
}

// hasClusters reports whether the client has clusters, and their endpoints. One that
// nobody has is not waited for.
func (st *Stream) hasClusters(names []string, target *streamed) bool {
	for _, name := range names {
		c := target.clusters.named(name)
		if c == nil {
			continue
		}
		asks := v3.ProxylessAsks(c.shell.message())
		if !st.clusters.has(name) || asks != "" && !st.endpoints.has(asks) {
			return false
		}
	}
	return true
}

// has reports whether the client asked for a name and has acknowledged what it was
// told.
func (t *subscribed) has(name string) bool {
	return t.wants(name) && !t.owed.has(name) && !slices.ContainsFunc(t.underway, func(s *sending) bool {
		return slices.ContainsFunc(s.resources, func(r *resource) bool { return r.name == name })
	})
}

// beyond are the names that are not among others.
func beyond(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
