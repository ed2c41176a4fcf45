package fleet

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// Connect and Disconnect record the streams of proxies. The fleet does not forget a proxy
// on a stream, however long it is silent.
func (f *Fleet) Connect(c *Client, st *stream.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := c.assignment.Load() != nil && f.clients[c.Node] == c
	if oldest := c.tooMany(st); oldest >= 0 {
		c.streams[oldest].PushOut()
		c.streams = slices.Delete(c.streams, oldest, oldest+1)
		if known {
			c.assignment.Load().entry.streams--
		}
	}
	c.streams = append(c.streams, st)
	if known {
		c.assignment.Load().entry.streams++
	}
}

// tooMany returns the index of the oldest stream of the same kind as a new one if there are
// as many as allowed, and -1 if there is room. A program and the Envoy beside it may have
// one node.
func (c *Client) tooMany(st *stream.Stream) int {
	ofKind := func(other *stream.Stream) bool { return other.IsProxyless() == st.IsProxyless() }
	most, n := stream.MaxStreamsOfProxy, 0
	if st.IsProxyless() {
		most = stream.MaxStreamsOfClient
	}
	for _, other := range c.streams {
		if ofKind(other) {
			n++
		}
	}
	if n < most {
		return -1
	}
	return slices.IndexFunc(c.streams, ofKind)
}

func (f *Fleet) Disconnect(c *Client, st *stream.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(c.streams)
	c.streams = slices.DeleteFunc(c.streams, func(other *stream.Stream) bool { return other == st })
	if f.clients[c.Node] == c {
		c.assignment.Load().entry.streams -= before - len(c.streams)
		now := int64(f.age())
		c.seen.Store(now)
		c.left.Store(now)
		c.assignment.Load().entry.seen.Store(now)
	} else if a := c.absence.Load(); a != nil && len(c.streams) == 0 && f.clients[c.Node] == nil {
		f.absent.put(*a) // It had to make room for others.
	}
}

// ViewsInForce returns the views that proxies should have now.
func (f *Fleet) ViewsInForce() map[*compiled.View]bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	views := map[*compiled.View]bool{}
	for _, entry := range f.entries {
		views[entry.current.Load()] = true
	}
	for c := range f.behind {
		views[c.assignment.Load().last] = true
	}
	delete(views, nil)
	return views
}

// StreamedFrom returns the entries of some views that have proxies on streams.
func (f *Fleet) StreamedFrom(views map[*compiled.View]bool) (all []*ViewEntry) {
	if len(views) == 0 {
		return nil
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, entry := range f.entries {
		if entry.streams > 0 && views[entry.current.Load()] {
			all = append(all, entry)
		}
	}
	return all
}

// Wake wakes the streams of the proxies that should have one of some views.
func (f *Fleet) Wake(views map[*compiled.View]bool) {
	if len(views) == 0 {
		return
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, entry := range f.entries {
		if entry.streams > 0 && views[entry.current.Load()] {
			entry.awakeLocked()
		}
	}
	for c := range f.behind {
		c.awakeLocked()
	}
}

func (f *Fleet) wakeMembers(entry *ViewEntry) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	entry.awakeLocked()
}

func (e *ViewEntry) awakeLocked() {
	if e.streams == 0 {
		return
	}
	for c := range e.members {
		c.awakeLocked()
	}
}

func (c *Client) awakeLocked() {
	for _, st := range c.streams {
		st.Awake()
	}
	for _, st := range c.secrets.open {
		st.Awake()
	}
}

// Awaiting returns the proxies of an entry that a change waits for: streams that have
// settled at least once and, if byPolls is set, proxies that polled recently.
func (f *Fleet) Awaiting(entry *ViewEntry, byPolls bool) (streams []*feedback.Awaited, polling []*Client) {
	var perhaps []*Client
	f.mu.RLock()
	for c := range entry.members {
		if c.assignment.Load().last != nil {
			continue // The proxy is sent the view of before.
		}
		for _, st := range c.streams {
			if st.HasSettled() {
				streams = append(streams, st.Awaited())
			}
		}
		if byPolls && len(c.streams) == 0 && c.Node.ID != "" {
			perhaps = append(perhaps, c)
		}
	}
	f.mu.RUnlock()
	unproved := map[string]int{}
	for _, c := range perhaps {
		if f.polledLately(c) && c.isProved(unproved) {
			polling = append(polling, c)
		}
	}
	return streams, polling
}
