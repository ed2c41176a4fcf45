package feedback

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxRollouts bounds the changes that are followed at a time. One more replaces the oldest.
const maxRollouts = 64

// Convergence measures how long changes take to reach the proxies that they concern: from
// the acknowledged write until the last of these proxies has accepted
// (docs/decisions/019-feedback.md). A caller may hold other locks. Convergence takes no
// other lock under its own.
type Convergence struct {
	Took      *prometheus.HistogramVec // by transport
	Abandoned *prometheus.CounterVec

	mu       sync.Mutex
	rollouts []*Rollout            // under way, oldest first
	polling  map[*Awaited]struct{} // proxies that poll
}

// Rollout follows the change of one publication to the proxies.
type Rollout struct {
	revision int64
	since    time.Time
	sealed   bool // all proxies that it concerns are known
	on       map[Transport]*transportProgress
}

// transportProgress is the progress of one rollout over one transport.
type transportProgress struct {
	left     int       // proxies that it has not reached yet
	accepted time.Time // when the last proxy accepted it, zero if none did
}

// Awaited lists the changes that a stream, or a proxy that polls, has not accepted yet.
type Awaited struct {
	Pending  atomic.Bool
	Over     Transport
	Silent   func() bool // reports whether a proxy that polls has stopped polling; nil for a stream
	rollouts []*Rollout  // guarded by the lock of Convergence
	gone     bool        // accepts nothing any more; guarded by the same lock
}

// Begin starts to track a change. The change does not count before Seal.
func (c *Convergence) Begin(revision int64, since time.Time) *Rollout {
	return &Rollout{revision: revision, since: since, on: map[Transport]*transportProgress{}}
}

// Concern makes a change wait for some proxies. Call it before the change can be sent to
// them.
func (c *Convergence) Concern(ro *Rollout, all []*Awaited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range all {
		if a.gone || slices.Contains(a.rollouts, ro) {
			continue
		}
		a.rollouts = slices.DeleteFunc(a.rollouts, func(old *Rollout) bool { return old.on == nil })
		a.rollouts = append(a.rollouts, ro)
		a.Pending.Store(true)
		if ro.on[a.Over] == nil {
			ro.on[a.Over] = &transportProgress{}
		}
		ro.on[a.Over].left++
		if a.Silent != nil {
			c.pollsLocked(a)
		}
	}
}

// pollsLocked makes Dismiss look at a proxy that polls.
func (c *Convergence) pollsLocked(a *Awaited) {
	if c.polling == nil {
		c.polling = map[*Awaited]struct{}{}
	}
	c.polling[a] = struct{}{}
}

// Seal records that Concern was called for all proxies of a change.
func (c *Convergence) Seal(ro *Rollout) {
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
func (c *Convergence) abandonLocked(ro *Rollout) {
	for over := range ro.on {
		c.Abandoned.WithLabelValues(string(over)).Inc()
	}
	ro.on = nil
}

// Accept records that a proxy has accepted all changes up to a revision.
func (c *Convergence) Accept(a *Awaited, revision int64) { c.release(a, revision, time.Now()) }

// Leave stops waiting for a proxy with changes up to a revision, because the proxy left or
// refuses them.
func (c *Convergence) Leave(a *Awaited, revision int64) { c.release(a, revision, time.Time{}) }

// Depart is Leave for all changes of a stream that has ended. No later change waits for the
// stream.
func (c *Convergence) Depart(a *Awaited) {
	c.mu.Lock()
	a.gone = true
	c.mu.Unlock()
	c.Leave(a, everything)
}

func (c *Convergence) release(a *Awaited, revision int64, accepted time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.rollouts = slices.DeleteFunc(a.rollouts, func(ro *Rollout) bool {
		if ro.revision > revision {
			return false
		}
		if p := ro.on[a.Over]; p != nil {
			p.left--
			if !accepted.IsZero() {
				p.accepted = accepted
			}
			if c.endLocked(ro) {
				c.rollouts = slices.DeleteFunc(c.rollouts, func(other *Rollout) bool { return other == ro })
			}
		}
		return true
	})
	a.Pending.Store(len(a.rollouts) > 0)
}

// endLocked counts a change over each transport where it has arrived, and reports whether
// it has arrived over all of them.
func (c *Convergence) endLocked(ro *Rollout) bool {
	if !ro.sealed {
		return false
	}
	for over, p := range ro.on {
		if p.left > 0 {
			continue
		}
		if !p.accepted.IsZero() {
			c.Took.WithLabelValues(string(over)).Observe(max(0, p.accepted.Sub(ro.since)).Seconds())
		}
		delete(ro.on, over)
	}
	return len(ro.on) == 0
}

// everything is the highest revision.
const everything = math.MaxInt64

// Poll records the transport over which a polling proxy gets its next changes.
func (c *Convergence) Poll(a *Awaited, over Transport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(a.rollouts) == 0 {
		a.Over = over
	}
}

// Dismiss stops waiting for proxies that fell silent. It looks only at proxies that have
// not accepted a change yet.
func (c *Convergence) Dismiss() {
	c.mu.Lock()
	var all []*Awaited
	for a := range c.polling {
		if !a.Pending.Load() {
			delete(c.polling, a)
			continue
		}
		all = append(all, a)
	}
	c.mu.Unlock()
	for _, a := range all {
		if a.Silent() {
			c.Leave(a, everything)
		}
	}
}
