package stream

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// A client of gRPC that comes with resources, after a restart of the server for example, goes
// on calling by them until it has new ones. If a response for clusters lacks one that it
// subscribes to, it drops the cluster at once, and its calls fail. So it is sent the clusters
// of the past views that it may be at.

// meetProxyless finds out which clusters and tables a client may have that came with some.
// Of tables it knows only one version for all that the client was sent last.
func (st *Stream) meetProxyless(target *compiled.Streamed, clusters *xds.Set) *xds.Set {
	if came := &st.routes.initial; came.version != "" {
		st.meetTables(target, came.version)
		came.version = ""
	}
	came := &st.clusters.initial
	if came.version == "" {
		return clusters
	}
	came.version, came.before = "", true
	missing := map[string]bool{}
	for name := range st.clusters.named.own() {
		if clusters.Named(name) == nil {
			missing[name] = true
		}
	}
	if len(missing) == 0 {
		return clusters
	}
	found := map[string]*ir.Cluster{}
	take := func(v *compiled.View) bool {
		v.EachCluster(func(name string, c *ir.Cluster) {
			if missing[name] {
				found[name] = c
			}
		})
		return len(found) == len(missing)
	}
	// The newest view that has a cluster is taken last.
	for _, v := range st.proxy.PastViews(target.View, take) {
		take(v)
	}
	all := slices.Clone(clusters.Sorted)
	for _, c := range found {
		all = append(all, target.View.Encoder.V3.ProxylessCluster(c).Cluster)
	}
	return xds.NewSet(xds.ClusterType, all)
}

// meetTables treats tables of a past view as sent if the version says that the client has
// them. Then it gets new ones step by step (nextTable).
func (st *Stream) meetTables(target *compiled.Streamed, version string) {
	t := &st.routes
	at := func(v *compiled.View) *xds.Set {
		if v.Encoder == nil {
			return nil // It has only clusters.
		}
		answers, err := v.EncodedProxyless()
		if err != nil {
			return nil
		}
		return answers.Routes
	}
	past := st.proxy.PastViews(target.View, func(v *compiled.View) bool {
		set := at(v)
		return set != nil && xds.VersionOf(nil, t.namedOf(set)) == version
	})
	var sets []*xds.Set
	for _, v := range append(past, target.View) {
		if set := at(v); set != nil {
			sets = append(sets, set)
		}
	}
	for i, v := range slices.Backward(past) {
		if set := at(v); set != nil {
			if has := t.withVersion(set, sets, version); has != nil {
				t.sent, t.acked = compiled.At{Set: has, View: past[i]}, compiled.At{Set: has, View: past[i]}
				t.pending = pending{}
				st.routed = time.Now()
				return
			}
		}
	}
}

// withVersion returns the tables of a set that a client subscribes to, in the form that has a
// version, or nil if none has. One table may be together with the clusters of another set.
func (t *subscription) withVersion(set *xds.Set, others []*xds.Set, version string) *xds.Set {
	named := t.namedOf(set)
	if len(named) != t.named.len() {
		return nil
	}
	if xds.VersionOf(nil, named) == version {
		return xds.NewSet(xds.RouteType, named)
	}
	if len(named) != 1 {
		return nil
	}
	for _, other := range others {
		table := other.Named(named[0].Name)
		if table == nil {
			continue
		}
		with := []*xds.Resource{named[0].WithKnown(beyond(table.LeadsTo(), named[0].LeadsTo()))}
		if xds.VersionOf(nil, with) == version {
			return xds.NewSet(xds.RouteType, with)
		}
	}
	return nil
}

// namedOf returns the resources of a set that the client subscribes to, sorted by name.
func (t *subscription) namedOf(s *xds.Set) []*xds.Resource {
	return slices.DeleteFunc(slices.Clone(s.Sorted), func(r *xds.Resource) bool { return !t.Wants(r.Name) })
}
