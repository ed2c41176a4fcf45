package fleet

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// A proxy may have streams of secrets beside the stream, or the polls, by which it gets
// everything else. They do not make it a connected proxy. If it is one, it runs only what it
// runs on all of its streams.

// secretStreams are the streams of secrets of a proxy. The fleet's lock guards it.
type secretStreams struct {
	open []*stream.Stream
	lost []lostSecrets
}

// lostSecrets is a stream of secrets that the proxy did not end. The proxy keeps the secrets
// until it has another stream.
type lostSecrets struct {
	at       time.Duration // when it ended, as age gives it
	revision int64         // that the proxy ran by it
}

// streamCount returns the number of streams of both kinds. The fleet's lock must be held.
func (c *Client) streamCount() int { return len(c.streams) + len(c.secrets.open) }

// AdmitForSecrets is Admit for a stream of secrets. A proxy that was not known is not
// connected, and one that was connected before stays absent.
func (f *Fleet) AdmitForSecrets(node mesh.Node, proxy mesh.Proxy, traits mesh.Traits) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[node]; c != nil {
		return c
	}
	if a, known := f.absent.all[node]; known {
		return f.admitAbsentLocked(a, proxy, traits)
	}
	c := f.admitLocked(node, proxy, traits)
	c.left.Store(c.seen.Load())
	return c
}

// ConnectSecrets and DisconnectSecrets record the streams of secrets of proxies. The fleet
// does not forget a proxy that has one.
func (f *Fleet) ConnectSecrets(c *Client, st *stream.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, more := &c.secrets, 1
	if len(s.open) == stream.MaxSecretStreamsOfProxy {
		s.open[0].PushOut()
		s.open, more = slices.Delete(s.open, 0, 1), 0
	}
	s.open = append(s.open, st)
	if len(s.lost) > 0 {
		s.lost = slices.Delete(s.lost, 0, 1)
	}
	if f.isCurrentLocked(c) {
		c.assignment.Load().entry.streams += more
	}
}

func (f *Fleet) DisconnectSecrets(c *Client, st *stream.Stream) {
	revision := st.SyncState(feedback.SyncVisitor{}).Revision
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &c.secrets
	i := slices.Index(s.open, st)
	if i < 0 {
		return // It was pushed out.
	}
	s.open = slices.Delete(s.open, i, i+1)
	if st.IsLost() {
		s.lost = append(s.lost[max(0, len(s.lost)+1-stream.MaxSecretStreamsOfProxy):], lostSecrets{f.age(), revision})
	}
	if f.isCurrentLocked(c) {
		entry := c.assignment.Load().entry
		entry.streams--
		entry.seen.Store(int64(f.age()))
	}
}

// isCurrentLocked reports whether a client was placed and is not forgotten.
func (f *Fleet) isCurrentLocked(c *Client) bool {
	return c.assignment.Load() != nil && f.clients[c.Node] == c
}

func (f *Fleet) secretStreamsOf(c *Client) []*stream.Stream {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(c.secrets.open)
}

// besideLocked returns the streams of secrets of a proxy, and the oldest revision of those
// that it lost a short while ago; none is false if there are none.
func (f *Fleet) besideLocked(c *Client) secretsBeside {
	out := secretsBeside{streams: c.secrets.open[:len(c.secrets.open):len(c.secrets.open)]}
	for _, l := range c.secrets.lost {
		if f.age()-l.at < ReturnTime && (!out.lost || l.revision < out.revision) {
			out.lost, out.revision = true, l.revision
		}
	}
	return out
}

// secretsBeside are the streams of secrets of a connected proxy.
type secretsBeside struct {
	streams  []*stream.Stream
	lost     bool  // it lost some a short while ago
	revision int64 // the oldest that it ran by these
}

// with returns the state of a stream, or of the polls, of a proxy together with that of its
// streams of secrets.
func (s secretsBeside) with(one feedback.ProxySyncState, r feedback.SyncVisitor) feedback.ProxySyncState {
	if one.View == nil || one.Transport == feedback.OverGRPC {
		return one
	}
	for _, st := range s.streams {
		st.AddTo(&one, r)
	}
	if s.lost {
		one.Revision = min(one.Revision, s.revision)
	}
	return one
}
