package stream

import (
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
)

// Remains is what a proxy had on a stream on which it refused something: of each type, the
// last responses that it acked, and what it nacked. A later stream of the proxy goes on from
// there, if what the proxy says about itself shows that nothing has changed in between. So
// what stays as it was because of a refusal stays so over a broken connection. Remains is
// immutable.
type Remains struct {
	types map[string]remainsOfType
	views []*compiled.View // that the proxy may route by
}

type remainsOfType struct {
	acked   compiled.At
	version string // of the last response that was acked
	nacks   nack.State
	newly   newlySubscribed
}

// Remains returns nil if the proxy refuses nothing, if it is not known yet what it refuses, or
// if the stream is in use.
func (st *Stream) Remains() *Remains {
	if !st.mu.TryLock() {
		return nil
	}
	defer st.mu.Unlock()
	return st.remainsLocked()
}

// resumable are the types that a stream goes on with. The order matters: routes stay as they
// were only if it is known which clusters the proxy refuses.
func (st *Stream) resumable() []*subscription {
	return []*subscription{&st.clusters, &st.listeners, &st.routes}
}

func (st *Stream) remainsLocked() *Remains {
	if st.proxyless || st.onlySecrets || !st.refuses.Load() {
		return nil
	}
	out := &Remains{types: map[string]remainsOfType{}}
	for _, t := range st.resumable() {
		nacks, settled := t.nacks.Clone()
		if !settled || t.acked.Set == nil {
			return nil
		}
		out.types[t.typeURL] = remainsOfType{t.acked, t.ackedVersion, nacks, t.newly.clone()}
		if t != &st.clusters {
			t.maybeAt(func(v *compiled.View) {
				if v != nil {
					out.views = append(out.views, v)
				}
			})
		}
	}
	return out
}

// resume goes on from what remains of an earlier stream, for the types of which the proxy says
// what it has.
func (st *Stream) resume() {
	var remains *Remains
	for i, t := range st.resumable() {
		if !t.initial.withSomething() || i > 0 && !st.clusters.resumed {
			continue
		}
		if remains == nil {
			if remains = st.proxy.Remains(st); remains == nil {
				return
			}
		}
		of := remains.types[t.typeURL]
		if st.delta {
			t.resumeDelta(of)
		} else if t.initial.version == of.version {
			t.resumeWorld(of)
		}
		if t == &st.clusters && t.resumed {
			st.pastViews = append(st.pastViews, remains.views...)
		}
	}
	if st.listeners.resumed && st.routes.resumed {
		st.arrival, st.pastViews = time.Time{}, nil // It is known what the proxy routes by.
	}
}

// resumeWorld goes on from a state-of-the-world response that the proxy acked. A response with
// clusters or listeners has all of them. Route tables are sent again, because the last response
// need not have had all of them.
func (t *subscription) resumeWorld(of remainsOfType) {
	t.takeUp(of)
	if t.Wild() {
		t.pending = pending{}
	}
}

// resumeDelta goes on from an earlier stream if the proxy has exactly the versions that it
// acked there. Everything else is pending.
func (t *subscription) resumeDelta(of remainsOfType) {
	before, has := *t, t.initial.versions
	t.takeUp(of)
	for name, version := range has {
		if r := t.nacks.LastAcked(t, name); r == nil || r.Hash.Version() != version {
			*t = before
			return
		}
		t.pending.remove(name)
	}
	t.pending.answer, t.pending.all = false, false
	for _, r := range of.acked.Set.Sorted {
		if _, ok := has[r.Name]; !ok && t.Wants(r.Name) && !t.nacks.Lacks(r.Name) {
			t.pending.add(r.Name)
		}
	}
}

func (t *subscription) takeUp(of remainsOfType) {
	t.acked, t.sent, t.ackedVersion, t.newly = of.acked, of.acked, of.version, of.newly.clone()
	t.nacks, _ = of.nacks.Clone()
	t.initial, t.resumed = initialVersions{}, true
}
