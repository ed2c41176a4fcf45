package fleet

import (
	"time"
)

// Anybody can claim to be a proxy, so views and proxies are bounded. At the bound a new one
// replaces another one. Proxies beside no workload of the registry go first, then those
// that were silent for longest, and those on a stream last. A proxy that comes back is
// served again, from a view that is compiled again.

// sweepLocked forgets the proxies that fell silent, and the views that have no other
// proxies. It visits all proxies, so it runs at most once a second.
func (f *Fleet) sweepLocked() {
	now := f.age()
	if f.swept != 0 && now-f.swept < time.Second {
		return
	}
	f.swept = now
	oldest := int64(now - f.opts.ProxyIdle)
	for _, c := range f.clients {
		if c.streamCount() == 0 && c.seen.Load() < oldest {
			f.forgetLocked(c)
		}
	}
}

func (f *Fleet) Sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweepLocked()
}

// evictEntryLocked makes room for an entry.
func (f *Fleet) evictEntryLocked() {
	var pinned, victim *ViewEntry
	if at := f.DefaultClient.assignment.Load(); at != nil {
		pinned = at.entry
	}
	for _, entry := range f.entries {
		if entry != pinned && (victim == nil || entry.priority().before(victim.priority())) {
			victim = entry
		}
	}
	if victim == nil {
		return
	}
	for c := range victim.members {
		f.forgetLocked(c)
	}
	f.dropLocked(victim)
}

// evictClientLocked makes room for a proxy. There may be very many proxies, so it takes
// some at random and forgets the one among them that should go first.
func (f *Fleet) evictClientLocked() {
	var victim *Client
	looked := 0
	for _, c := range f.clients {
		if victim == nil || c.priority().before(victim.priority()) {
			victim = c
		}
		if looked++; looked == 64 {
			break
		}
	}
	f.forgetLocked(victim)
}

// evictionPriority decides which proxy or view is dropped first.
type evictionPriority struct {
	streams      bool
	unregistered bool
	seen         int64
}

func (e *ViewEntry) priority() evictionPriority {
	return evictionPriority{e.streams > 0, e.unregistered, e.seen.Load()}
}

func (c *Client) priority() evictionPriority {
	return evictionPriority{c.streamCount() > 0, c.assignment.Load().entry.unregistered, c.seen.Load()}
}

// before reports whether one is dropped before another.
func (a evictionPriority) before(b evictionPriority) bool {
	switch {
	case a.streams != b.streams:
		return b.streams
	case a.unregistered != b.unregistered:
		return a.unregistered
	}
	return a.seen < b.seen
}
