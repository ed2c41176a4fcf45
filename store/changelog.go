package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// ChangeLogBytes is about how much a ChangeLog keeps at most, in the sense of
// Batch.Size.
const ChangeLogBytes = 64 << 20

// ChangeLog is the recent past of a store in memory: the newest batches of
// events, up to a bound in number and one in bytes, and the watches over them.
// Watchers are cursors into the one log, so that memory is bounded by the log
// alone however many watch and however slowly they read: who falls out of it is
// cut off.
//
// It is safe for concurrent use.
type ChangeLog struct {
	mu      sync.RWMutex
	batches []Batch // with events, ascending, one whole revision each
	events  int     // in batches
	bytes   int     // in batches
	dropped int     // bytes that left batches but not yet its array
	limit   int
	floor   int64         // changes after this revision are kept
	at      Batch         // and those of it, where they are known
	head    int64         // changes up to this revision are known
	epoch   int           // counts Reset
	moved   chan struct{} // closed with the next head
	parked  parking
}

// NewChangeLog is an empty history at a revision, keeping about limit events or
// ChangeLogBytes, whichever is less. A single batch is kept however large it is.
func NewChangeLog(revision int64, limit int) *ChangeLog {
	return &ChangeLog{floor: revision, head: revision, limit: limit, moved: make(chan struct{})}
}

// Revision is the newest revision known.
func (l *ChangeLog) Revision() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.head
}

// Floor is the oldest revision to watch from: the changes after it are kept.
func (l *ChangeLog) Floor() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.floor
}

// Append adds a batch newer than all before. One that holds several revisions
// is kept as one batch for each, so that a cursor may stand between them. A
// batch without events only moves the revision on, if it does.
func (l *ChangeLog) Append(b Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.Revision <= l.head {
		return
	}
	l.head = b.Revision
	for one := range b.Revisions() {
		l.parked.wake(one)
		l.batches = append(l.batches, one)
		l.events += len(one.Events)
		l.bytes += one.Size()
	}
	for len(l.batches) > 1 && (l.events > l.limit || l.bytes > ChangeLogBytes) {
		l.dropOldestLocked()
	}
	l.wakeLocked()
}

// Compact forgets the changes up to a revision.
func (l *ChangeLog) Compact(revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.batches) > 0 && l.batches[0].Revision <= revision {
		l.dropOldestLocked()
	}
	l.floor = max(l.floor, min(revision, l.head))
	if l.at.Revision < l.floor {
		l.at = Batch{}
	}
}

// Reset forgets everything and starts anew at a revision, as after a list that
// may hide changes; what that revision changed is for Repeat alone. All watches
// end with ErrExpired.
func (l *ChangeLog) Reset(at Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches, l.events, l.bytes, l.dropped = nil, 0, 0, 0
	l.floor, l.at, l.head = at.Revision, at, at.Revision
	l.epoch++
	l.parked.wakeAll()
	l.wakeLocked()
}

func (l *ChangeLog) dropOldestLocked() {
	oldest := l.batches[0]
	l.floor, l.at = oldest.Revision, oldest
	l.events -= len(oldest.Events)
	l.bytes -= oldest.Size()
	l.dropped += oldest.Size()
	// What is dropped stays in the array: others may be reading it (see
	// Since). When that is much, the rest moves to an array of its own.
	l.batches = l.batches[1:]
	if l.dropped > ChangeLogBytes/4 {
		l.batches, l.dropped = slices.Clone(l.batches), 0
	}
}

func (l *ChangeLog) wakeLocked() {
	close(l.moved)
	l.moved = make(chan struct{})
}

// Since returns the batches after a revision, in order, or ErrExpired. The
// slice is shared and must not be changed.
func (l *ChangeLog) Since(revision int64) ([]Batch, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if revision < l.floor {
		return nil, l.expiredLocked(revision)
	}
	return l.sinceLocked(revision), nil
}

// Repeat implements Repeater.
func (l *ChangeLog) Repeat(scope Scope, revision int64) ([]Event, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if revision < l.floor {
		return nil, l.expiredLocked(revision)
	}
	if revision == l.at.Revision {
		return l.at.In(scope).Events, nil
	}
	if ahead := l.sinceLocked(revision - 1); len(ahead) > 0 && ahead[0].Revision == revision {
		return ahead[0].In(scope).Events, nil
	}
	return nil, nil
}

func (l *ChangeLog) sinceLocked(revision int64) []Batch {
	i, found := slices.BinarySearchFunc(l.batches, revision, func(b Batch, r int64) int {
		return cmp.Compare(b.Revision, r)
	})
	if found {
		i++
	}
	return slices.Clip(l.batches[i:])
}

func (l *ChangeLog) expiredLocked(revision int64) error {
	return &Error{Kind: ErrExpired, Detail: fmt.Sprintf(
		"changes after revision %d are no longer kept, the oldest kept follow revision %d: list again", revision, l.floor)}
}

// Wait returns once the revision is known. When the context ends first, that
// is ErrFuture with the context's error as its cause.
func (l *ChangeLog) Wait(ctx context.Context, revision int64) error {
	for {
		l.mu.RLock()
		head, moved := l.head, l.moved
		l.mu.RUnlock()
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
// revision 0, which is the beginning. onEnd is called when the watch has ended of
// itself, or was read by Batches and has ended for whatever reason.
func (l *ChangeLog) Watch(ctx context.Context, scope Scope, after int64, onEnd ...func()) (Puller, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if after < l.floor {
		return nil, l.expiredLocked(after)
	}
	c := &cursor{
		log: l, ctx: ctx, scope: scope, after: after, epoch: l.epoch,
		woken: make(chan struct{}, 1), onEnd: onEnd,
	}
	c.sign() // There may be something already.
	c.stop = context.AfterFunc(ctx, func() { l.leave(c) })
	return c, nil
}

// leave forgets a cursor that has ended.
func (l *ChangeLog) leave(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.parked {
		l.parked.unpark(c)
	}
}
