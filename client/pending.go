package client

import (
	"fmt"

	"github.com/pilot-api/pilot-api/store"
)

// Limits of the events that a watch holds: their number, and their memory as estimated by
// weightOf.
const (
	maxHeld       = 100_000
	maxHeldWeight = 256 << 20
)

// pendingEvents holds events until their revision is known to be complete.
type pendingEvents struct {
	events []store.Event
	weight int
}

func (p *pendingEvents) add(e store.Event) error {
	p.events = append(p.events, e)
	p.weight += weightOf(e.Object)
	if n := len(p.events); n > maxHeld || p.weight > maxHeldWeight {
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d changes (about %d bytes of memory) came and are not known to be complete, %d (%d) are allowed", n, p.weight, maxHeld, maxHeldWeight)}
	}
	return nil
}

// takeAll removes and returns the events.
func (p *pendingEvents) takeAll() []store.Event {
	taken := p.events
	*p = pendingEvents{}
	return taken
}
