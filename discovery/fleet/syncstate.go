package fleet

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// EachState visits all connected proxies that have a view.
func (f *Fleet) EachState(published int64, visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
	f.eachState(f.present(), published, visit, r)
}

// EachCounted visits all connected proxies that have a view, and those that were lost a short
// while ago and are not elsewhere. It returns the awaited proxies that are not clients yet, in no
// order. All this is so at one moment: a proxy that comes or goes meanwhile is not missed.
func (f *Fleet) EachCounted(published int64, elsewhere func(mesh.Node) bool, visit func(feedback.ProxySyncState), r feedback.SyncVisitor) (returning []mesh.Node) {
	f.mu.RLock()
	present, lost, returning := f.presentLocked(), f.lostLocked(), f.returningLocked()
	f.mu.RUnlock()
	f.eachState(present, published, visit, r)
	for _, c := range lost {
		if v := c.View(); v != nil && !elsewhere(c.Node) {
			// The server does not know what it runs.
			visit(feedback.ProxySyncState{Transport: c.absenceTransport(), View: v, Away: true})
		}
	}
	return returning
}

func (f *Fleet) eachState(present []connectedProxy, published int64, visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
	unproved := map[string]int{}
	for _, p := range present {
		for _, st := range p.streams {
			if one := p.beside.with(st.SyncState(r), r); one.View != nil {
				visit(one)
			}
		}
		if p.polls && p.isProved(unproved) {
			if one := p.beside.with(p.stateByPolls(published, r), r); one.View != nil {
				visit(one)
			}
		}
	}
}

// UnprovedCount returns the number of node ids that poll but do not count as proxies yet.
func (f *Fleet) UnprovedCount() (n int) {
	unproved := map[string]int{}
	for _, p := range f.present() {
		if len(p.streams) == 0 && f.polledLately(p.Client) && !p.isProved(unproved) {
			n++
		}
	}
	return n
}

// connectedProxy is a proxy and its streams.
type connectedProxy struct {
	*Client
	streams []*stream.Stream
	polls   bool // it is on no stream, and polls
	beside  secretsBeside
}

// present returns all known proxies except the default client.
func (f *Fleet) present() []connectedProxy {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.presentLocked()
}

func (f *Fleet) presentLocked() []connectedProxy {
	all := make([]connectedProxy, 0, len(f.clients))
	streams := make([]*stream.Stream, 0, len(f.clients))
	for _, c := range f.clients {
		begin := len(streams)
		streams = append(streams, c.streams...)
		polls := len(c.streams) == 0 && f.polledLately(c)
		all = append(all, connectedProxy{c, streams[begin:len(streams):len(streams)], polls, f.besideLocked(c)})
	}
	return all
}

// EachType calls visit with the sync state of a proxy that polls over v3, for each type. It
// returns the newest configuration that the proxy's polls have fully confirmed, or nil for
// none.
func (c *Client) EachType(target *compiled.Polled, visit func(name string, s feedback.TypeStatus)) *compiled.Polled {
	a, err := target.View.EncodedV3(c.Proxy.IP)
	if err != nil {
		return nil
	}
	return c.Transition.EachType(target, a, c.Proxy.IP, visit)
}

// stateByPolls is that of a proxy which is on no stream.
func (c *Client) stateByPolls(published int64, r feedback.SyncVisitor) feedback.ProxySyncState {
	out := feedback.ProxySyncState{Transport: feedback.OverREST, View: c.View()}
	if out.View == nil {
		return out
	}
	target := out.View.Polled()
	at, newest := c.Fetched.Oldest(target)
	if at != nil {
		out.Transport, out.State = feedback.OverV1, feedback.Stale
		if newest {
			out.State = feedback.Fetched
		}
		if r.State != nil {
			c.Fetched.Each(target, r.State)
		}
	} else {
		at = c.EachType(target, func(name string, s feedback.TypeStatus) { out.Note(r, name, s) })
		out.NoteWithheld(r, c.withheldByPolls(out.View))
		out.State = feedback.OrSent(out.State)
	}
	if at != nil {
		out.At, out.Revision = at.View, c.runs(at, target, published)
	}
	c.lastPoll.Store(&polledAs{out.Transport, out.Revision})
	if out.State == feedback.Rejected && r.Refusal != nil {
		c.Transition.EachRefusal(c.Node.ID, r.Refusal)
		feedback.EachWithheld(c.Node.ID, c.withheldByPolls(out.View), out.View.Config, r.Refusal)
	}
	return out
}
