package stream

import (
	"iter"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// An endpoint set without instances fails the requests of every route that leads there. When
// a change takes the last instance of a set, it often has routes leave the set too: a port
// has another name, or a subset has other labels. So the set stays as the proxy has it
// until the proxy has the new routes (docs/decisions/017-streams.md).

// endpointsNow returns the endpoint sets that the proxy should have now, and a function that
// returns the set of a name that they lack. moving means that the proxy does not have the
// listeners and routes of the target yet.
func (st *Stream) endpointsNow(target *compiled.Streamed, leaving []*compiled.View, moving bool) (compiled.At, func(name string) *xds.Resource) {
	to := target.EndpointsBeside(leaving)
	names := st.keep(target, to, moving)
	find := func(name string) *xds.Resource {
		if _, kept := slices.BinarySearch(names, name); kept {
			return nil
		}
		return st.endpointsNamed(name)
	}
	return compiled.At{Set: target.EndpointsKeeping(to, st.endpoints.sent.Set, names), View: target.View}, find
}

// moves reports whether the proxy may not have the listeners and routes of the target, or
// may soon have another target.
func (st *Stream) moves(listeners, routes compiled.At) bool {
	return !st.isKnown() || st.listeners.moves(listeners.Set) || st.routes.moves(routes.Set) || !st.shared.Encoder.Current.Load().IsComplete()
}

// moves reports whether the proxy has not answered the newest of what it wants.
func (t *subscription) moves(to *xds.Set) bool {
	return t.asked && (len(t.inFlight) > 0 || !t.pending.nothing() || !t.wasSent(to))
}

// emptied is an endpoint set of which the proxy has instances that are gone.
type emptied struct {
	since time.Time
	came  bool // the proxy had them before the stream began
}

// keep returns the names of the empty sets that are held back, sorted: those of clusters that
// are being withdrawn and, while the proxy moves to other listeners and routes, those of the
// target.
func (st *Stream) keep(target *compiled.Streamed, to *xds.Set, moving bool) (names []string) {
	before := st.emptied
	st.emptied = nil
	keeps := func(name string, e emptied) bool {
		does := (moving || target.Endpoints.Named(name) == nil) && st.lasts(e.since.Add(pastviews.EmptiedBound))
		if does {
			names = append(names, name)
		}
		return does
	}
	for name, e := range before {
		r := to.Named(name)
		switch {
		case !e.came || r == nil && st.arrival.IsZero():
		case (r == nil || r.Empty) && keeps(name, e):
			st.noteEmptied(name, e)
		default:
			st.endpoints.pending.add(name)
		}
	}
	for name := range st.endpoints.emptiedBy(to) {
		e, known := before[name]
		if !known {
			e.since = time.Now()
		}
		keeps(name, e)
		st.noteEmptied(name, e)
	}
	slices.Sort(names)
	return names
}

// emptiedBy yields the empty sets in which the proxy was sent instances.
func (t *subscription) emptiedBy(to *xds.Set) iter.Seq[string] {
	return func(yield func(string) bool) {
		if t.sent.Set == nil {
			return
		}
		for _, r := range to.Since(t.sent.Set).Changed {
			if sent := t.sent.Named(r.Name); r.Empty && sent != nil && !sent.Empty && !yield(r.Name) {
				return
			}
		}
	}
}

func (st *Stream) noteEmptied(name string, e emptied) {
	if st.emptied == nil {
		st.emptied = map[string]emptied{}
	}
	st.emptied[name] = e
}

// meetEndpoints records the endpoint sets that the proxy came with. A set that is empty by
// now may be in use.
func (st *Stream) meetEndpoints(target *compiled.Streamed) {
	versions := st.endpoints.initial.versions
	var empty []string
	st.endpoints.meet(compiled.At{Set: target.Endpoints, View: target.View}, func(name string) *xds.Resource {
		r := st.endpointsNamed(name)
		if r != nil && r.Empty && r.Hash.Version() != versions[name] {
			empty = append(empty, name)
		}
		return r
	})
	for _, name := range empty {
		st.endpoints.pending.remove(name)
		st.noteEmptied(name, emptied{time.Now(), true})
	}
}
