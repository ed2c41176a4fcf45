package discovery

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/discovery/compiled"
)

// maxRollouts bounds the changes that are followed on their way. One more takes the
// place of the oldest.
const maxRollouts = 64

// convergence follows changes on their way to the proxies that they concern: from the
// acknowledged write until the last of these has accepted (docs/decisions/019-feedback.md).
// Its lock is taken under others, and none under it.
type convergence struct {
	took      *prometheus.HistogramVec // by transport
	abandoned *prometheus.CounterVec

	mu       sync.Mutex
	rollouts []*rollout           // under way, oldest first
	polling  map[*client]struct{} // who has changes to take by polls
}

// rollout is the way of what a publication has changed.
type rollout struct {
	revision int64
	since    time.Time
	sealed   bool // all that it concerns are known
	on       map[Transport]*passage
}

// passage is one's over one transport.
type passage struct {
	left     int       // proxies that it has not reached
	accepted time.Time // by the last one, zero by none
}

// awaited are the changes that a stream, or a proxy that polls, has still to accept.
type awaited struct {
	any      atomic.Bool
	over     Transport
	rollouts []*rollout // guarded by the lock of convergence, as is
	gone     bool       // that it accepts nothing any more
}

// begin follows a change. Nothing counts before seal.
func (c *convergence) begin(revision int64, since time.Time) *rollout {
	return &rollout{revision: revision, since: since, on: map[Transport]*passage{}}
}

// concern has proxies wait for a change. It must be called before they can be told.
func (c *convergence) concern(ro *rollout, all []*awaited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range all {
		if a.gone || slices.Contains(a.rollouts, ro) {
			continue
		}
		a.rollouts = slices.DeleteFunc(a.rollouts, func(old *rollout) bool { return old.on == nil })
		a.rollouts = append(a.rollouts, ro)
		a.any.Store(true)
		if ro.on[a.over] == nil {
			ro.on[a.over] = &passage{}
		}
		ro.on[a.over].left++
	}
}

// seal ends the concerning.
func (c *convergence) seal(ro *rollout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ro.sealed = true
	if c.endLocked(ro) {
		return
	}
	if len(c.rollouts) == maxRollouts {
		c.abandonLocked(c.rollouts[0])
		c.rollouts = slices.Delete(c.rollouts, 0, 1)
	}
	c.rollouts = append(c.rollouts, ro)
}

// abandonLocked gives up on a change.
func (c *convergence) abandonLocked(ro *rollout) {
	for over := range ro.on {
		c.abandoned.WithLabelValues(string(over)).Inc()
	}
	ro.on = nil
}

// accept notes that all changes up to a revision have been accepted.
func (c *convergence) accept(a *awaited, revision int64) { c.release(a, revision, time.Now()) }

// leave notes that changes up to a revision are waited for no more: by one that went
// away, or refuses them.
func (c *convergence) leave(a *awaited, revision int64) { c.release(a, revision, time.Time{}) }

// depart is leave for a stream that has ended, which somebody may just have found.
func (c *convergence) depart(a *awaited) {
	c.mu.Lock()
	a.gone = true
	c.mu.Unlock()
	c.leave(a, everything)
}

func (c *convergence) release(a *awaited, revision int64, accepted time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.rollouts = slices.DeleteFunc(a.rollouts, func(ro *rollout) bool {
		if ro.revision > revision {
			return false
		}
		if p := ro.on[a.over]; p != nil {
			p.left--
			if !accepted.IsZero() {
				p.accepted = accepted
			}
			if c.endLocked(ro) {
				c.rollouts = slices.DeleteFunc(c.rollouts, func(other *rollout) bool { return other == ro })
			}
		}
		return true
	})
	a.any.Store(len(a.rollouts) > 0)
}

// endLocked counts what has arrived, and reports whether a change has everywhere.
func (c *convergence) endLocked(ro *rollout) bool {
	if !ro.sealed {
		return false
	}
	for over, p := range ro.on {
		if p.left > 0 {
			continue
		}
		if !p.accepted.IsZero() {
			c.took.WithLabelValues(string(over)).Observe(max(0, p.accepted.Sub(ro.since)).Seconds())
		}
		delete(ro.on, over)
	}
	return len(ro.on) == 0
}

// everything is a revision that none is above.
const everything = math.MaxInt64

// conclude notes where a stream is with the changes that it has to accept, when
// nothing is due.
func (st *Stream) conclude(target *compiled.Streamed) {
	if !st.awaited.any.Load() {
		return
	}
	refuses := false
	for _, t := range st.types() {
		switch desired := st.desired(t, target); {
		case !t.asked:
		case len(t.underway) > 0:
			return
		case t.state(desired) == Rejected:
			refuses = true
		case t.state(desired) != Synced:
			return
		}
	}
	if refuses {
		st.server.convergence.leave(&st.awaited, target.Revision)
	} else {
		st.server.convergence.accept(&st.awaited, target.Revision)
	}
}

// concludePolls is conclude for a proxy that has polled. What it has is looked at until
// that is all that it should have.
func (s *Publisher) concludePolls(c *client) {
	target := c.toldView()
	if target == nil || c.handover.at.Load() == target && !c.awaited.any.Load() {
		return
	}
	state := Synced
	var at *compiled.View
	if v, newest := c.fetched.oldest(target); v == nil {
		at = c.handover.each(target, func(_ string, t TypeStatus) { state = worse(state, t.State) })
	} else if newest {
		at = target
	}
	switch {
	case !c.awaited.any.Load():
	case state == Rejected:
		s.convergence.leave(&c.awaited, target.Revision)
	case at == target:
		s.convergence.accept(&c.awaited, target.Revision)
	}
}

// concerns has the proxies of a slot wait for a change: of those on streams, who was
// settled once, and if it is also told by polls, who has polled lately.
func (s *Publisher) concerns(ro *rollout, sl *slot, byPolls bool) {
	if ro == nil {
		return
	}
	var all []*awaited
	var perhaps, polling []*client
	s.fleet.mu.RLock()
	for c := range sl.members {
		if c.place.Load().last != nil {
			continue // It is told what was before.
		}
		for _, st := range c.streams {
			if st.settled.Load() {
				all = append(all, &st.awaited)
			}
		}
		if byPolls && len(c.streams) == 0 && c.node.ID != "" {
			perhaps = append(perhaps, c)
		}
	}
	s.fleet.mu.RUnlock()
	unproved := map[string]int{}
	for _, c := range perhaps {
		if s.polledLately(c) && c.isProved(unproved) {
			polling = append(polling, c)
		}
	}
	all = append(all, s.convergence.poll(polling)...)
	s.convergence.concern(ro, all)
}

// poll takes down that proxies have something to take by polls.
func (c *convergence) poll(all []*client) (as []*awaited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range all {
		if len(one.awaited.rollouts) == 0 {
			one.awaited.over = OverREST
			if v, _ := one.fetched.oldest(nil); v != nil {
				one.awaited.over = OverV1
			}
		}
		c.polling[one] = struct{}{}
		as = append(as, &one.awaited)
	}
	return as
}

// dismiss has nothing waited for by those who fell silent. It looks at those only who
// have something to take.
func (s *Publisher) dismiss() {
	c := &s.convergence
	c.mu.Lock()
	var all []*client
	for one := range c.polling {
		if !one.awaited.any.Load() {
			delete(c.polling, one)
			continue
		}
		all = append(all, one)
	}
	c.mu.Unlock()
	for _, one := range all {
		if one.gone.Load() || len(s.fleet.streamsOf(one)) > 0 || !s.polledLately(one) {
			c.leave(&one.awaited, everything)
		}
	}
}
