package nack

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// refusedCluster is a cluster of which a proxy has no version, because it nacks what it
// was sent.
type refusedCluster struct {
	name  string // of its resource
	words string // of the nack
	blame bool   // it is to blame, not only a suspect
	// secured is set if the cluster begins TLS. Routes that lead to it never stay as they
	// were, because they may have been in plain text.
	secured bool
}

// lacking returns the clusters of a view of which the proxy has no version, by name. f is
// that of the proxy's clusters, nil for none.
func (f *State) lacking(v *compiled.View) []refusedCluster {
	if f == nil || v == nil {
		return nil
	}
	var out []refusedCluster
	for _, name := range slices.Sorted(maps.Keys(f.byName)) {
		if c := f.byName[name]; c.acked == nil && !c.mayHave {
			out = append(out, refusedCluster{name: name, words: c.Words, blame: c.blame})
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, c := range v.Config.Clusters {
		if i := indexOf(out, c.Name); i >= 0 {
			out[i].secured = c.TLS != nil
		}
	}
	return out
}

// indexOf returns the index of a cluster by its name in a configuration, -1 for none.
func indexOf(sorted []refusedCluster, name string) int {
	i, found := slices.BinarySearchFunc(sorted, envoy.ClusterName(name), func(c refusedCluster, name string) int { return cmp.Compare(c.name, name) })
	if !found {
		return -1
	}
	return i
}

// refusedBy returns the first refused cluster that some routes lead to, nil for none.
func refusedBy(routes []*ir.Route, lacking []refusedCluster) (found *refusedCluster) {
	if len(lacking) == 0 {
		return nil
	}
	for _, r := range routes {
		r.EachCluster(func(name string) {
			if i := indexOf(lacking, name); i >= 0 && (found == nil || lacking[i].secured) {
				found = &lacking[i]
			}
		})
	}
	return found
}

// holdRoutes begins to hold back the routes of further tables that lead to refused
// clusters. They stay as the proxy acked them.
func (f *State) holdRoutes(t Subscription, to compiled.At, find func(string) *xds.Resource, lacking []refusedCluster) {
	if len(lacking) == 0 {
		return
	}
	for _, table := range to.View.Config.RouteTables {
		r := find(table.Name)
		if r == nil || !t.Wants(table.Name) || f.tables[table.Name] != nil || f.byName[table.Name] != nil {
			continue
		}
		a := &partialRoutes{target: r, acked: f.lastAckedTable(t, table.Name), from: t.Acked().View, splice: to.View.Encoder.V3.PartialTable, lacking: lacking}
		if _, held := a.partsAfter(nil, table); len(held) == 0 || !a.retarget(r, table, t.Acked().View, lacking) {
			continue
		}
		if f.tables == nil {
			f.tables = map[string]*partialRoutes{}
		}
		f.tables[table.Name] = a
		f.addTrial(t, a)
	}
}

// hold reports whether a part stays unchanged because it leads to a refused cluster, and
// records that. The form that the proxy acked must be known, and must not lead to such a
// cluster.
func (a *partialRoutes) hold(p *routePart) bool {
	c := refusedBy(p.routes, a.lacking)
	if c == nil || c.secured || p.previous.host == nil || refusedBy(p.previous.routes, a.lacking) != nil {
		return false
	}
	p.words, p.suspected = waitsFor(c), !c.blame
	return true
}
