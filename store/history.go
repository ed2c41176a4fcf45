package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// HistoryBytes is about how much a History keeps at most, in the sense of
// Batch.Size.
const HistoryBytes = 64 << 20

// History is the recent past of a store in memory: the newest batches of
// events, up to a bound in number and one in bytes, and the watches over them. Watchers are cursors into
// the one history, so that memory is bounded by the history alone however many
// watch and however slowly they read: who falls out of it is cut off.
//
// It is safe for concurrent use.
type History struct {
	mu      sync.RWMutex
	batches []Batch // with events, ascending, one whole revision each
	events  int     // in batches
	bytes   int     // in batches
	dropped int     // bytes that left batches but not yet its array
	limit   int
	floor   int64 // changes after this revision are kept
	head    int64 // changes up to this revision are known
	epoch   int   // counts Reset
	moved   chan struct{}
}

// NewHistory is an empty history at a revision, keeping about limit events or
// HistoryBytes, whichever is less. A single batch is kept however large it is.
func NewHistory(revision int64, limit int) *History {
	return &History{floor: revision, head: revision, limit: limit, moved: make(chan struct{})}
}

// Revision is the newest revision known.
func (h *History) Revision() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.head
}

// Append adds a batch newer than all before. One that holds several revisions
// is kept as one batch for each, so that a cursor may stand between them. A
// batch without events only moves the revision on, if it does.
func (h *History) Append(b Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.Revision <= h.head {
		return
	}
	h.head = b.Revision
	for rest := b.Events; len(rest) > 0; {
		var first Batch
		first, rest = firstRevision(rest)
		h.batches = append(h.batches, first)
		h.events += len(first.Events)
		h.bytes += first.Size()
	}
	for len(h.batches) > 1 && (h.events > h.limit || h.bytes > HistoryBytes) {
		h.dropOldestLocked()
	}
	h.wakeLocked()
}

func firstRevision(events []Event) (Batch, []Event) {
	revision := events[0].Object.Revision()
	n := 1
	for n < len(events) && events[n].Object.Revision() == revision {
		n++
	}
	return Batch{Revision: revision, Events: events[:n:n]}, events[n:]
}

// Compact forgets the changes up to a revision.
func (h *History) Compact(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.batches) > 0 && h.batches[0].Revision <= revision {
		h.dropOldestLocked()
	}
	h.floor = max(h.floor, min(revision, h.head))
	h.wakeLocked()
}

// Reset forgets everything and starts anew at a revision, as after a list that
// may hide changes. All watches end with ErrExpired.
func (h *History) Reset(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batches, h.events, h.bytes, h.dropped = nil, 0, 0, 0
	h.floor, h.head = revision, revision
	h.epoch++
	h.wakeLocked()
}

func (h *History) dropOldestLocked() {
	oldest := h.batches[0]
	h.floor = oldest.Revision
	h.events -= len(oldest.Events)
	h.bytes -= oldest.Size()
	h.dropped += oldest.Size()
	// What is dropped stays in the array: others may be reading it (see
	// Since). When that is much, the rest moves to an array of its own.
	h.batches = h.batches[1:]
	if h.dropped > HistoryBytes/4 {
		h.batches, h.dropped = slices.Clone(h.batches), 0
	}
}

func (h *History) wakeLocked() {
	close(h.moved)
	h.moved = make(chan struct{})
}

// Since returns the batches after a revision, in order, or ErrExpired. The
// slice is shared and must not be changed.
func (h *History) Since(revision int64) ([]Batch, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if revision < h.floor {
		return nil, h.expiredLocked(revision)
	}
	return h.sinceLocked(revision), nil
}

func (h *History) sinceLocked(revision int64) []Batch {
	i, found := slices.BinarySearchFunc(h.batches, revision, func(b Batch, r int64) int {
		return cmp.Compare(b.Revision, r)
	})
	if found {
		i++
	}
	return slices.Clip(h.batches[i:])
}

func (h *History) expiredLocked(revision int64) error {
	return &Error{Kind: ErrExpired, Detail: fmt.Sprintf(
		"changes after revision %d are no longer kept, the oldest kept follow revision %d: list again", revision, h.floor)}
}

// Wait returns once the revision is known. When the context ends first, that
// is ErrFuture with the context's error as its cause.
func (h *History) Wait(ctx context.Context, revision int64) error {
	for {
		h.mu.RLock()
		head, moved := h.head, h.moved
		h.mu.RUnlock()
		if head >= revision {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return &Error{Kind: ErrFuture, Cause: ctx.Err(), Detail: fmt.Sprintf(
				"revision %d is not reached, the newest known is %d", revision, head)}
		}
	}
}

// Watch delivers the changes in scope after a revision, which may lie beyond
// the newest known one. It keeps the promises of Reader.Watch but for
// revision 0, which is the beginning.
func (h *History) Watch(ctx context.Context, scope Scope, after int64) (Watcher, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if after < h.floor {
		return nil, h.expiredLocked(after)
	}
	c := &cursor{
		history: h, scope: scope, after: after, epoch: h.epoch,
		out: make(chan Batch), progress: make(chan struct{}, 1),
	}
	go c.run(ctx)
	return c, nil
}
