package query

import (
	"maps"
	"slices"
)

// readers are the nodes that read one: most have one or a few, and some are read
// by all.
type readers struct {
	one  *node              // nil for none, and when there are several
	few  []*node            // several
	many map[*node]struct{} // instead of few, when there are more than fewReaders
}

const fewReaders = 8

func (r *readers) len() int {
	if r.one != nil {
		return 1
	}
	return len(r.few) + len(r.many)
}

// add is for a node that may be there already.
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
