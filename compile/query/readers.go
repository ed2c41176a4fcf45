package query

import (
	"maps"
	"slices"
)

// readers is the set of nodes that read a node. Most nodes have one or a few
// readers; some are read by all.
type readers struct {
	one  *node              // nil if there is none, or several
	few  []*node            // if there are several
	many map[*node]struct{} // instead of few, if there are more than fewReaders
}

const fewReaders = 8

func (r *readers) len() int {
	if r.one != nil {
		return 1
	}
	return len(r.few) + len(r.many)
}

// add adds a node, which may already be in the set.
func (r *readers) add(n *node) {
	switch {
	case r.many != nil:
		r.many[n] = struct{}{}
	case r.one == n:
	case r.one == nil && len(r.few) == 0:
		r.one = n
	case r.one != nil:
		r.few, r.one = []*node{r.one, n}, nil
	case slices.Contains(r.few, n):
	case len(r.few) < fewReaders:
		r.few = append(r.few, n)
	default:
		r.many = map[*node]struct{}{n: {}}
		for _, one := range r.few {
			r.many[one] = struct{}{}
		}
		r.few = nil
	}
}

func (r *readers) remove(n *node) {
	if r.one == n {
		r.one = nil
		return
	}
	if r.many != nil {
		delete(r.many, n)
		return
	}
	if at := slices.Index(r.few, n); at >= 0 {
		r.few = slices.Delete(r.few, at, at+1)
	}
}

func (r *readers) all(yield func(*node) bool) {
	if r.one != nil {
		yield(r.one)
		return
	}
	if r.many != nil {
		maps.Keys(r.many)(yield)
		return
	}
	slices.Values(r.few)(yield)
}
