package client

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/store"
)

// The bounds of what a watch holds, in events and in the sense of
// store.Batch.Size.
const (
	maxHeld      = 100_000
	maxHeldBytes = 64 << 20
)

// held are events until their revision is known to be complete.
type held struct {
	events []store.Event
	size   int
}

func (h *held) add(events ...store.Event) error {
	h.events = append(h.events, events...)
	h.size += store.Batch{Events: events}.Size()
	if n := len(h.events); n > maxHeld || h.size > maxHeldBytes {
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d changes (%d bytes) came and are not known to be complete, %d (%d) are allowed", n, h.size, maxHeld, maxHeldBytes)}
	}
	return nil
}

// take is the first n events, which are held no longer.
func (h *held) take(n int) []store.Event {
	taken := slices.Clone(h.events[:n])
	h.events = slices.Delete(h.events, 0, n)
	h.size -= store.Batch{Events: taken}.Size()
	return taken
}
