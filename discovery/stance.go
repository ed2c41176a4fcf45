package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// stance is how one stream, or one proxy that polls, stands at one moment.
type stance struct {
	transport Transport
	state     SyncState      // the worst of its types
	view      *compiled.View // that it should have
	at        *compiled.View // that it has, nil when that is not known
	revision  int64          // that it runs
}

// regard is what somebody wants to know beside it; either may be nil.
type regard struct {
	refusal func(diag.Ref, Refusal)
	state   func(name string, s TypeStatus) // of a type, which may be several times
}

// note takes in the state of a type.
func (s *stance) note(r regard, name string, t TypeStatus) {
	s.state = worse(s.state, t.State)
	if r.state != nil {
		r.state(name, t)
	}
}

// concerns reports whether some objects are in what the proxy has, or should have.
func (s *stance) concerns(of []diag.Ref) bool {
	for _, v := range []*compiled.View{s.view, s.at} {
		if v != nil && slices.ContainsFunc(of, func(ref diag.Ref) bool { _, is := v.Origins()[ref]; return is }) {
			return true
		}
	}
	return false
}

// stances visits all that are connected and have something that they should have.
func (s *Publisher) stances(visit func(stance), r regard) {
	unproved := map[string]int{}
	for _, p := range s.fleet.present() {
		for _, st := range p.streams {
			if one := st.stance(r); one.view != nil {
				visit(one)
			}
		}
		if len(p.streams) == 0 && s.polledLately(p.client) && p.isProved(unproved) {
			if one := s.stanceByPolls(p.client, r); one.view != nil {
				visit(one)
			}
		}
	}
}

// unprovedCount is how many poll that nobody counts as proxies yet.
func (s *Publisher) unprovedCount() (n int) {
	unproved := map[string]int{}
	for _, p := range s.fleet.present() {
		if len(p.streams) == 0 && s.polledLately(p.client) && !p.isProved(unproved) {
			n++
		}
	}
	return n
}

// attendee is a proxy and its streams.
type attendee struct {
	*client
	streams []*Stream
}

// present is all known proxies but the one that nobody is.
func (f *fleet) present() []attendee {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]attendee, 0, len(f.clients))
	streams := make([]*Stream, 0, len(f.clients))
	for _, c := range f.clients {
		begin := len(streams)
		streams = append(streams, c.streams...)
		all = append(all, attendee{c, streams[begin:len(streams):len(streams)]})
	}
	return all
}

// Transport is what the proxy is told over.
func (st *Stream) Transport() Transport {
	switch {
	case st.delta:
		return OverDelta
	case st.proxyless:
		return OverGRPC
	}
	return OverADS
}

// stance has no view while there is nothing that the proxy should have.
func (st *Stream) stance(r regard) stance {
	published := st.server.Revision()
	st.mu.Lock()
	defer st.mu.Unlock()
	out := stance{transport: st.Transport()}
	target, err := st.target()
	if err != nil {
		return out
	}
	out.view, out.revision = target.View, st.revision(target, published)
	if st.at != nil {
		out.at = st.at.View
	}
	for _, t := range st.types() {
		if !t.asked {
			continue
		}
		desired := st.desired(t, target)
		s := TypeStatus{State: t.state(desired)}
		if r.state != nil {
			s.Error = t.words(desired)
			if t.good.Set != nil {
				s.Version = t.good.Set.Version
			}
		}
		out.note(r, xds.NameOf(t.typeURL), s)
	}
	out.noteWithheld(r, st.withheld(target))
	out.state = known(out.state)
	if out.state == Rejected && r.refusal != nil {
		st.eachRefusalLocked(target, r.refusal)
	}
	return out
}

// stanceByPolls is that of a proxy which is on no stream.
func (s *Publisher) stanceByPolls(c *client, r regard) stance {
	published := s.Revision()
	out := stance{transport: OverREST, view: c.toldView()}
	if out.view == nil {
		return out
	}
	if at, newest := c.fetched.oldest(out.view); at != nil {
		out.transport, out.at, out.state = OverV1, at, Stale
		if newest {
			out.state = Fetched
		}
		if r.state != nil {
			c.fetched.each(out.view, r.state)
		}
	} else {
		out.at = c.handover.each(out.view, func(name string, s TypeStatus) { out.note(r, name, s) })
		out.noteWithheld(r, c.withheldByPolls(out.view))
		out.state = known(out.state)
	}
	out.revision = c.runs(out.at, out.view, published)
	if out.state == Rejected && r.refusal != nil {
		c.handover.eachRefusal(c, r.refusal)
		c.eachWithheld(c.withheldByPolls(out.view), out.view.Config, r.refusal)
	}
	return out
}

// badness of states; what is not there is none.
var badness = map[SyncState]int{Fetched: 1, Synced: 2, Sent: 3, Stale: 4, Rejected: 5}

func worse(a, b SyncState) SyncState {
	if badness[b] > badness[a] {
		return b
	}
	return a
}

// known is the state of a proxy: one that has not asked for anything yet has not got it.
func known(state SyncState) SyncState {
	if state == "" {
		return Sent
	}
	return state
}
