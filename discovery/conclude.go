package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
)

// concludePolls records which changes a proxy that has polled has accepted. The proxy is
// looked at until it has everything that it should have.
func (p *Publisher) concludePolls(c *fleet.Client) {
	v := c.View()
	if v == nil {
		return
	}
	target := v.Polled()
	if c.Transition.Acked() == target && !c.Awaited.Pending.Load() {
		return
	}
	state := feedback.Synced
	var at *compiled.Polled
	if v, newest := c.Fetched.Oldest(target); v == nil {
		at = c.EachType(target, func(_ string, t feedback.TypeStatus) { state = feedback.Worse(state, t.State) })
	} else if newest {
		at = target
	}
	switch {
	case !c.Awaited.Pending.Load():
	case state == feedback.Rejected:
		p.convergence.Leave(&c.Awaited, v.Revision)
	case at == target:
		p.convergence.Accept(&c.Awaited, v.Revision)
	}
}

// concerns makes a change wait for the proxies of an entry: those on streams that have
// settled at least once and, if byPolls is set, those that polled recently.
func (p *Publisher) concerns(ro *feedback.Rollout, entry *fleet.ViewEntry, byPolls bool) {
	if ro == nil {
		return
	}
	all, polling := p.fleet.Awaiting(entry, byPolls)
	for _, c := range polling {
		over := OverREST
		if v, _ := c.Fetched.Oldest(nil); v != nil {
			over = OverV1
		}
		p.convergence.Poll(&c.Awaited, over)
		all = append(all, &c.Awaited)
	}
	p.convergence.Concern(ro, all)
}
