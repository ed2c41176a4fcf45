package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// ObjectStatuses takes a look at all proxies. What is as it was in an earlier look, nil for
// none, is shared with that.
func (s *Publisher) ObjectStatuses(before *feedback.ObjectStatuses) *feedback.ObjectStatuses {
	published, problems := s.newest.known()
	return feedback.NewObjectStatuses(meshOf(published), problems, before, s.stances)
}

// stances visits all that are connected and have something that they should have.
func (s *Publisher) stances(visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
	unproved := map[string]int{}
	for _, p := range s.fleet.present() {
		for _, st := range p.streams {
			if one := st.SyncState(r); one.View != nil {
				visit(one)
			}
		}
		if len(p.streams) == 0 && s.fleet.polledLately(p.client) && p.isProved(unproved) {
			if one := s.stanceByPolls(p.client, r); one.View != nil {
				visit(one)
			}
		}
	}
}

// unprovedCount is how many poll that nobody counts as proxies yet.
func (s *Publisher) unprovedCount() (n int) {
	unproved := map[string]int{}
	for _, p := range s.fleet.present() {
		if len(p.streams) == 0 && s.fleet.polledLately(p.client) && !p.isProved(unproved) {
			n++
		}
	}
	return n
}

// attendee is a proxy and its streams.
type attendee struct {
	*client
	streams []*stream.Stream
}

// present is all known proxies but the one that nobody is.
func (f *fleet) present() []attendee {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]attendee, 0, len(f.clients))
	streams := make([]*stream.Stream, 0, len(f.clients))
	for _, c := range f.clients {
		begin := len(streams)
		streams = append(streams, c.streams...)
		all = append(all, attendee{c, streams[begin:len(streams):len(streams)]})
	}
	return all
}

// stanceByPolls is that of a proxy which is on no stream.
func (s *Publisher) stanceByPolls(c *client, r feedback.SyncVisitor) feedback.ProxySyncState {
	published := s.Revision()
	out := feedback.ProxySyncState{Transport: feedback.OverREST, View: c.toldView()}
	if out.View == nil {
		return out
	}
	if at, newest := c.fetched.Oldest(out.View); at != nil {
		out.Transport, out.At, out.State = feedback.OverV1, at, feedback.Stale
		if newest {
			out.State = feedback.Fetched
		}
		if r.State != nil {
			c.fetched.Each(out.View, r.State)
		}
	} else {
		out.At = c.handover.EachType(out.View, func(name string, s feedback.TypeStatus) { out.Note(r, name, s) })
		out.NoteWithheld(r, c.withheldByPolls(out.View))
		out.State = feedback.OrSent(out.State)
	}
	out.Revision = c.runs(out.At, out.View, published)
	if out.State == feedback.Rejected && r.Refusal != nil {
		c.handover.EachRefusal(c.node.ID, r.Refusal)
		feedback.EachWithheld(c.node.ID, c.withheldByPolls(out.View), out.View.Config, r.Refusal)
	}
	return out
}
