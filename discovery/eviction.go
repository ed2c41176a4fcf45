package discovery

import (
	"maps"
	"time"
)

// What proxies say of themselves is anybody's word. Views and places have a
// bound, and at the bound there is room for a new one all the same: strangers go
// first, who stand beside no workload of the registry, then who was silent
// longest. Whoever comes back is served again, from a view that is compiled
// again.

// sweepLocked forgets the proxies that fell silent and the views nobody has. It
// looks at everything, and so at most once a second.
func (g *generation) sweepLocked() {
	now := g.server.age()
	if g.swept != 0 && now-g.swept < time.Second {
		return
	}
	g.swept = now
	oldest := int64(now - g.server.opts.ProxyIdle)
	maps.DeleteFunc(g.places, func(_ string, p *proxyState) bool { return p.seen.Load() < oldest })
	used := map[*view]bool{g.surveyed: true}
	for _, p := range g.places {
		used[p.view] = true
	}
	maps.DeleteFunc(g.views, func(_ string, s *slot) bool {
		v := s.peek()
		return v != nil && !used[v]
	})
}

// sweep is sweepLocked for when nobody new has asked for a while.
func (g *generation) sweep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweepLocked()
}

// evictViewLocked makes room for a view.
func (g *generation) evictViewLocked() {
	var victim *slot
	key := ""
	for k, s := range g.views {
		if v := s.peek(); v != nil && v == g.surveyed {
			continue
		}
		if victim == nil || before(s.stranger, s.seen.Load(), victim.stranger, victim.seen.Load()) {
			victim, key = s, k
		}
	}
	delete(g.views, key)
	maps.DeleteFunc(g.places, func(_ string, p *proxyState) bool { return p.slot == victim })
}

// evictPlaceLocked makes room for a place: that of the first to go among some
// taken at random, as there may be very many.
func (g *generation) evictPlaceLocked() {
	var victim *proxyState
	looked := 0
	for _, p := range g.places {
		if victim == nil || before(p.slot.stranger, p.seen.Load(), victim.slot.stranger, victim.seen.Load()) {
			victim = p
		}
		if looked++; looked == 64 {
			break
		}
	}
	delete(g.places, victim.node)
}

// before reports whether one goes before another.
func before(stranger bool, seen int64, otherStranger bool, otherSeen int64) bool {
	if stranger != otherStranger {
		return stranger
	}
	return seen < otherSeen
}

// placesSince are those of the proxies that asked after some age of the server.
func (g *generation) placesSince(oldest time.Duration) []*proxyState {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var out []*proxyState
	for _, p := range g.places {
		if p.seen.Load() >= int64(oldest) {
			out = append(out, p)
		}
	}
	return out
}
