package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/xds"
)

// names are the names of a type that a stream subscribes to. An Envoy subscribes to the
// endpoints of all of its clusters. These are the names of a set that many streams share,
// so they take no memory for each stream.
type names struct {
	shared *xds.Set            // the set whose names are among them; nil for none
	extra  map[string]struct{} // names that the set lacks
	bytes  int                 // of extra
}

func (n *names) len() int {
	if n.shared == nil {
		return len(n.extra)
	}
	return len(n.shared.Sorted) + len(n.extra)
}

func (n *names) has(name string) bool {
	if n.shared != nil && n.shared.Named(name) != nil {
		return true
	}
	_, ok := n.extra[name]
	return ok
}

// are reports whether they are exactly the listed names, in any order.
func (n *names) are(list []string) bool {
	if len(list) < n.len() {
		return false
	}
	for _, name := range list {
		if !n.has(name) {
			return false
		}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return len(slices.Compact(list)) == n.len()
}

func (n *names) add(name string) {
	if n.has(name) {
		return
	}
	if n.extra == nil {
		n.extra = map[string]struct{}{}
	}
	n.extra[name] = struct{}{}
	n.bytes += len(name)
}

func (n *names) remove(name string) {
	if n.shared != nil && n.shared.Named(name) != nil {
		n.list(nil, n.own())
	}
	if _, ok := n.extra[name]; ok {
		delete(n.extra, name)
		n.bytes -= len(name)
	}
}

// list sets them to the names of a set, and extra ones.
func (n *names) list(of *xds.Set, extra map[string]struct{}) {
	n.shared, n.extra, n.bytes = of, extra, 0
	for name := range extra {
		n.bytes += len(name)
	}
}

// own returns all of them in a map of the caller's.
func (n *names) own() map[string]struct{} {
	all := make(map[string]struct{}, n.len())
	for name := range n.extra {
		all[name] = struct{}{}
	}
	if n.shared != nil {
		for _, r := range n.shared.Sorted {
			all[r.Name] = struct{}{}
		}
	}
	return all
}

// share keeps them as the names of a set, with extra ones, if they include the whole set.
// So no older set stays in memory only for its names.
func (n *names) share(s *xds.Set) {
	if n.shared == s || n.len() < len(s.Sorted) || len(s.Sorted) == 0 {
		return
	}
	if len(n.extra) == 0 && sameNames(n.shared, s) {
		n.shared = s
		return
	}
	for _, r := range s.Sorted {
		if !n.has(r.Name) {
			return
		}
	}
	all := n.own()
	for _, r := range s.Sorted {
		delete(all, r.Name)
	}
	if len(all) == 0 {
		all = nil
	}
	n.list(s, all)
}

func sameNames(a, b *xds.Set) bool {
	return a != nil && slices.EqualFunc(a.Sorted, b.Sorted, func(a, b *xds.Resource) bool { return a.Name == b.Name })
}
