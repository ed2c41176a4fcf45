package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
)

// concludePolls is conclude for a proxy that has polled. What it has is looked at until
// that is all that it should have.
func (s *Publisher) concludePolls(c *client) {
	target := c.toldView()
	if target == nil || c.handover.Acked() == target && !c.awaited.Pending.Load() {
		return
	}
	state := feedback.Synced
	var at *compiled.View
	if v, newest := c.fetched.Oldest(target); v == nil {
		at = c.handover.EachType(target, func(_ string, t feedback.TypeStatus) { state = feedback.Worse(state, t.State) })
	} else if newest {
		at = target
	}
	switch {
	case !c.awaited.Pending.Load():
	case state == feedback.Rejected:
		s.convergence.Leave(&c.awaited, target.Revision)
	case at == target:
		s.convergence.Accept(&c.awaited, target.Revision)
	}
}

// concerns has the proxies of a slot wait for a change: of those on streams, who was
// settled once, and if it is also told by polls, who has polled lately.
func (s *Publisher) concerns(ro *feedback.Rollout, sl *slot, byPolls bool) {
	if ro == nil {
		return
	}
	var all []*feedback.Awaited
	var perhaps []*client
	s.fleet.mu.RLock()
	for c := range sl.members {
		if c.place.Load().last != nil {
			continue // It is told what was before.
		}
		for _, st := range c.streams {
			if st.HasSettled() {
				all = append(all, st.Awaited())
			}
		}
		if byPolls && len(c.streams) == 0 && c.node.ID != "" {
			perhaps = append(perhaps, c)
		}
	}
	s.fleet.mu.RUnlock()
	unproved := map[string]int{}
	for _, c := range perhaps {
		if s.fleet.polledLately(c) && c.isProved(unproved) {
			over := feedback.OverREST
			if v, _ := c.fetched.Oldest(nil); v != nil {
				over = feedback.OverV1
			}
			s.convergence.Poll(&c.awaited, over)
			all = append(all, &c.awaited)
		}
	}
	s.convergence.Concern(ro, all)
}
