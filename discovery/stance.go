package discovery

import (
	"github.com/pilot-api/pilot-api/diag"
)

// stance is how one stream, or one proxy that polls, stands at one moment: the short
// form of a ProxyStatus, for who looks at all of them.
type stance struct {
	transport Transport
	state     SyncState // the worst of its types
	view      *view     // that it should have
	at        *view     // that it has, nil when that is not known
	revision  int64     // that it runs
}

// stances visits all that are connected, and what they refuse where somebody wants to
// know.
func (s *Publisher) stances(visit func(stance), refusal func(diag.Ref, Refusal)) {
	for _, p := range s.fleet.present() {
		for _, st := range p.streams {
			if one, ok := st.stance(refusal); ok {
				visit(one)
			}
		}
		if len(p.streams) == 0 && s.polledLately(p.client) {
			if one := s.stanceByPolls(p.client); one.view != nil {
				if one.state == Rejected && refusal != nil {
					p.handover.eachRefusal(p.client, refusal)
				}
				visit(one)
			}
		}
	}
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

func (st *Stream) transport() Transport {
	switch {
	case st.delta:
		return OverDelta
	case st.proxyless:
		return OverGRPC
	}
	return OverADS
}

// stance is false while there is nothing that the proxy should have.
func (st *Stream) stance(refusal func(diag.Ref, Refusal)) (stance, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	target, err := st.target()
	if err != nil {
		return stance{}, false
	}
	out := stance{transport: st.transport(), view: target.view, revision: st.revision(target)}
	if st.at != nil {
		out.at = st.at.view
	}
	for _, t := range st.types() {
		if t.asked {
			out.state = worse(out.state, t.state(st.desired(t, target)))
		}
	}
	out.state = known(out.state)
	if out.state == Rejected && refusal != nil {
		st.eachRefusalLocked(target, refusal)
	}
	return out, true
}

func (s *Publisher) stanceByPolls(c *client) stance {
	target := c.toldView()
	out := stance{transport: OverV1, state: Stale, view: target}
	at, newest := c.fetched.oldest(target)
	switch {
	case at == nil:
		out.transport, out.state = OverREST, ""
		at = c.handover.each(target, func(_ string, s TypeStatus) { out.state = worse(out.state, s.State) })
		out.state = known(out.state)
	case newest:
		out.state = Fetched
	}
	out.at, out.revision = at, s.runs(c, at, target)
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
