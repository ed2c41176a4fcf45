package discovery

import (
	"time"
)

// What proxies say of themselves is anybody's word. Views and proxies have a
// bound, and at the bound there is room for a new one all the same: strangers go
// first, who stand beside no workload of the registry, then who was silent
// longest. Whoever comes back is served again, from a view that is compiled
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
		if c.seen.Load() < oldest {
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
		if sl != pinned && (victim == nil || before(sl.stranger, sl.seen.Load(), victim.stranger, victim.seen.Load())) {
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
	stranger, looked := false, 0
	for _, c := range f.clients {
		of := c.place.Load().slot.stranger
		if victim == nil || before(of, c.seen.Load(), stranger, victim.seen.Load()) {
			victim, stranger = c, of
		}
		if looked++; looked == 64 {
			break
		}
	}
	f.forgetLocked(victim)
}

// before reports whether one goes before another.
func before(stranger bool, seen int64, otherStranger bool, otherSeen int64) bool {
	if stranger != otherStranger {
		return stranger
	}
	return seen < otherSeen
}
