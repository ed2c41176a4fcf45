package compiled

import (
	"maps"
	"slices"
	"strings"
	"weak"

	"github.com/pilot-api/pilot-api/ir"
)

// difference says how the clusters of a view differ from those of another view. It does not
// keep the other view in memory.
type difference struct {
	from           weak.Pointer[View]
	added, removed bool
}

// ClustersSince reports whether the view has clusters that an older view lacks, and whether
// it lacks clusters that the older view has. All proxies that come from the same view share
// the result.
func (v *View) ClustersSince(older *View) (added, removed bool) {
	from := weak.Make(older)
	if known := v.lastDifference.Load(); known != nil && known.from == from {
		return known.added, known.removed
	}
	added, removed = clustersBetween(older.Config, v.Config)
	v.lastDifference.Store(&difference{from, added, removed})
	return added, removed
}

// clustersBetween reports whether next has clusters that before lacks, and the reverse.
func clustersBetween(before, next *ir.Config) (added, removed bool) {
	walk(before, next, func(old, new *ir.Cluster) {
		added = added || old == nil
		removed = removed || new == nil
	})
	return added, removed
}

// Withdrawn returns the clusters of before that next lacks.
func Withdrawn(before, next *ir.Config) []*ir.Cluster {
	var out []*ir.Cluster
	walk(before, next, func(old, new *ir.Cluster) {
		if new == nil {
			out = append(out, old)
		}
	})
	return out
}

// walk calls visit with each cluster, by name, that is not the same value in two
// configurations. Both must be sorted by name. A cluster that one of them lacks is nil.
func walk(before, next *ir.Config, visit func(old, new *ir.Cluster)) {
	a, b := before.Clusters, next.Clusters
	if len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] {
		return
	}
	for len(a) > 0 && len(b) > 0 {
		if a[0] == b[0] {
			a, b = a[1:], b[1:]
			continue
		}
		switch order := strings.Compare(a[0].Name, b[0].Name); {
		case order < 0:
			visit(a[0], nil)
			a = a[1:]
		case order > 0:
			visit(nil, b[0])
			b = b[1:]
		default:
			visit(a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
	for _, old := range a {
		visit(old, nil)
	}
	for _, new := range b {
		visit(nil, new)
	}
}

// withdrawnSince returns the clusters that only the older views have, by name, each in its
// newest form.
func (v *View) withdrawnSince(older []*View) []*ir.Cluster {
	named := map[string]*ir.Cluster{}
	for _, o := range older {
		for _, c := range Withdrawn(o.Config, v.Config) {
			named[c.Name] = c
		}
	}
	return slices.SortedFunc(maps.Values(named), ByClusterName)
}

func ByClusterName(a, b *ir.Cluster) int { return strings.Compare(a.Name, b.Name) }
