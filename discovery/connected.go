package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// connect and disconnect note the streams of proxies: who is on one is not
// forgotten for its silence.
func (f *fleet) connect(c *client, st *stream.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := c.place.Load() != nil && f.clients[c.node] == c
	if oldest := c.tooMany(st); oldest >= 0 {
		c.streams[oldest].PushOut()
		c.streams = slices.Delete(c.streams, oldest, oldest+1)
		if known {
			c.place.Load().slot.streams--
		}
	}
	c.streams = append(c.streams, st)
	if known {
		c.place.Load().slot.streams++
	}
}

// tooMany is the oldest stream of the kind of a new one where there are as many as may
// be; -1 where there is room. A program and the Envoy beside it may have one node.
func (c *client) tooMany(st *stream.Stream) int {
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

func (f *fleet) disconnect(c *client, st *stream.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(c.streams)
	c.streams = slices.DeleteFunc(c.streams, func(other *stream.Stream) bool { return other == st })
	if f.clients[c.node] == c {
		c.place.Load().slot.streams -= before - len(c.streams)
		now := int64(f.age())
		c.seen.Store(now)
		c.left.Store(now)
		c.place.Load().slot.seen.Store(now)
	}
}

// toldViews are those that proxies are told now.
func (f *fleet) toldViews() map[*compiled.View]bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	views := map[*compiled.View]bool{}
	for _, sl := range f.slots {
		views[sl.view.Load()] = true
	}
	for c := range f.behind {
		views[c.place.Load().last] = true
	}
	delete(views, nil)
	return views
}

// streamedBy are the slots of views that somebody streams from.
func (f *fleet) streamedBy(views map[*compiled.View]bool) (all []*slot) {
	if len(views) == 0 {
		return nil
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, sl := range f.slots {
		if sl.streams > 0 && views[sl.view.Load()] {
			all = append(all, sl)
		}
	}
	return all
}

// wake has the streams of proxies that are told some views look again.
func (f *fleet) wake(views map[*compiled.View]bool) {
	if len(views) == 0 {
		return
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, sl := range f.slots {
		if sl.streams > 0 && views[sl.view.Load()] {
			sl.awakeLocked()
		}
	}
	for c := range f.behind {
		c.awake()
	}
}

func (f *fleet) wakeMembers(sl *slot) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	sl.awakeLocked()
}

func (sl *slot) awakeLocked() {
	if sl.streams == 0 {
		return
	}
	for c := range sl.members {
		c.awake()
	}
}

// awake must be called under the fleet's lock.
func (c *client) awake() {
	for _, st := range c.streams {
		st.Awake()
	}
}
