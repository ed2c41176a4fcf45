package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// ChangeLogBytes is the approximate maximum size of the changes in a ChangeLog, as measured
// by Batch.Size.
const ChangeLogBytes = 64 << 20

// ChangeLog is the recent history of a store in memory: the newest batches of events,
// bounded in number and in bytes, and the watches over them. Watches are cursors into
// the one log. So the log alone bounds the memory, regardless of the number and speed
// of the watchers. A watch that falls behind the log is ended.
//
// A ChangeLog is safe for concurrent use.
type ChangeLog struct {
	mu      sync.RWMutex
	batches []Batch // with events, ascending, one whole revision each
	events  int     // in batches
	bytes   int     // in batches
	dropped int     // bytes dropped from batches that its array still holds
	limit   int
	floor   int64         // changes after this revision are kept
	at      Batch         // the changes at floor, if they are known
	head    int64         // changes up to this revision are known
	epoch   int           // counts calls of Reset
	moved   chan struct{} // closed when head next changes
	parked  parking
}

// NewChangeLog returns an empty log at a revision. It keeps about limit events or
// ChangeLogBytes, whichever is less. It keeps a single batch of any size.
func NewChangeLog(revision int64, limit int) *ChangeLog {
	return &ChangeLog{floor: revision, head: revision, limit: limit, moved: make(chan struct{})}
}

// Revision returns the newest revision known.
func (l *ChangeLog) Revision() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.head
}

// Floor returns the oldest revision that a watch can start from. The changes after it
// are kept.
func (l *ChangeLog) Floor() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.floor
}

// Append adds a batch that is newer than all before. A batch of several revisions is
// stored as one batch for each, so that a cursor can stand between them. A batch
// without events only advances the revision. A batch that is not newer is ignored.
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

// Compact drops the changes up to and including a revision.
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

// Reset drops everything and starts again at a revision, for example after a list that
// may hide changes. Only Repeat returns the changes of that revision. All watches end
// with ErrExpired.
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
	// Dropped batches stay in the array because others may be reading them (see Since).
	// If they grow large, the rest moves to a new array.
	l.batches = l.batches[1:]
	if l.dropped > ChangeLogBytes/4 {
		l.batches, l.dropped = slices.Clone(l.batches), 0
	}
}

func (l *ChangeLog) wakeLocked() {
	close(l.moved)
	l.moved = make(chan struct{})
}

// Since returns the batches after a revision, in order, or ErrExpired. The slice is
// shared and must not be changed.
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

// Wait returns once the revision is known. If the context ends first, the error is
// ErrFuture with the context's error as its cause.
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

// Watch delivers the changes in scope after a revision, which may be beyond the newest
// known one. It follows the contract of Reader.Watch, except that revision 0 means the
// beginning. onEnd is called when the watch ends with an error of its own. A watch that
// is read by Batches also calls it when the context ends.
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
	c.sign() // There may already be changes.
	c.stop = context.AfterFunc(ctx, func() { l.leave(c) })
	return c, nil
}

// leave removes a cursor that has ended.
func (l *ChangeLog) leave(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.parked {
		l.parked.unpark(c)
	}
}
