package client

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/store"
)

// These bound what a watch holds, in events and in bytes as measured by
// store.Batch.Size.
const (
	maxHeld      = 100_000
	maxHeldBytes = 64 << 20
)

// pendingEvents holds events until their revision is known to be complete.
type pendingEvents struct {
	events []store.Event
	size   int
}

func (p *pendingEvents) add(events ...store.Event) error {
	p.events = append(p.events, events...)
	p.size += store.Batch{Events: events}.Size()
	if n := len(p.events); n > maxHeld || p.size > maxHeldBytes {
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d changes (%d bytes) came and are not known to be complete, %d (%d) are allowed", n, p.size, maxHeld, maxHeldBytes)}
	}
	return nil
}

// take removes and returns the first n events.
func (p *pendingEvents) take(n int) []store.Event {
	taken := slices.Clone(p.events[:n])
	p.events = slices.Delete(p.events, 0, n)
	p.size -= store.Batch{Events: taken}.Size()
	return taken
}
