package discovery

import (
	"time"
)

// What proxies say of themselves is anybody's word. Views and proxies have a
// bound, and at the bound there is room for a new one all the same: strangers go
// first, who stand beside no workload of the registry, then who was silent
// longest, and at last who is on a stream. Whoever comes back is served again, from a view that is compiled
// again.

// sweepLocked forgets the proxies that fell silent, and with them the views
// nobody has. It looks at all of them, and so at most once a second.
func (f *fleet) sweepLocked() {
	now := f.age()
	if f.swept != 0 && now-f.swept < time.Second {
		return
	}
	f.swept = now
	oldest := int64(now - f.opts.ProxyIdle)
	for _, c := range f.clients {
		if len(c.streams) == 0 && c.seen.Load() < oldest {
			f.forgetLocked(c)
		}
	}
}

func (f *fleet) sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweepLocked()
}

// evictSlotLocked makes room for a slot.
func (f *fleet) evictSlotLocked() {
	var pinned, victim *slot
	if at := f.nobody.place.Load(); at != nil {
		pinned = at.slot
	}
	for _, sl := range f.slots {
		if sl != pinned && (victim == nil || sl.standing().before(victim.standing())) {
			victim = sl
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

// evictClientLocked makes room for a proxy: that of the first to go among some
// taken at random, as there may be very many.
func (f *fleet) evictClientLocked() {
	var victim *client
	looked := 0
	for _, c := range f.clients {
		if victim == nil || c.standing().before(victim.standing()) {
			victim = c
		}
		if looked++; looked == 64 {
			break
		}
	}
	f.forgetLocked(victim)
}

// standing is what decides who goes first.
type standing struct {
	streams  bool
	stranger bool
	seen     int64
}

func (sl *slot) standing() standing { return standing{sl.streams > 0, sl.stranger, sl.seen.Load()} }

func (c *client) standing() standing {
	return standing{len(c.streams) > 0, c.place.Load().slot.stranger, c.seen.Load()}
}

// before reports whether one goes before another.
func (a standing) before(b standing) bool {
	switch {
	case a.streams != b.streams:
		return b.streams
	case a.stranger != b.stranger:
		return a.stranger
	}
	return a.seen < b.seen
}
