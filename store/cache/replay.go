package cache

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/store"
)

// replaySpan is the number of revisions between the beginnings of two watches of a replay.
// etcd sends at most 1,000 revisions at a time to a watch that begins in the past. Each
// time it reads everything up to the present, and it waits 100 ms in between. So a single
// watch over 50,000 revisions takes 20 seconds.
const replaySpan = 1000

// replayWatches is how many watches of a replay run at a time.
const replayWatches = 8

// replay brings the copy from the past closer to a revision that the source has. Several
// watches read the changes at the same time. If they fail, are slow or get too much, replay
// ends early: the watch that follows goes on where the copy is, and meets a lasting fault
// itself. The error is that of changes that do not follow from the copy.
func (c *Cache) replay(ctx context.Context, to int64) error {
	for {
		after := c.changes.Revision()
		if to-after <= replaySpan {
			return nil // The watch that follows reads these changes as fast.
		}
		spans, err := c.nextSpans(ctx, after, to)
		if err != nil {
			c.log.Debug("the past is read by one watch", "revision", after, "error", err)
			return nil
		}
		for _, b := range spans {
			if b, some := newer(b, c.changes.Revision()); some {
				if err := c.apply(b); err != nil {
					return err
				}
			}
		}
		if c.changes.Revision() <= after {
			return nil
		}
	}
}

// nextSpans returns the batches of the next spans after a revision, in order. Batches may
// overlap.
func (c *Cache) nextSpans(ctx context.Context, after, to int64) ([]store.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var waiting atomic.Int64
	spans := make([][]store.Batch, replayWatches)
	group, ctx := errgroup.WithContext(ctx)
	for i := range spans {
		begin := after + int64(i)*replaySpan
		if begin >= to {
			break
		}
		group.Go(func() (err error) {
			spans[i], err = c.changesIn(ctx, begin, min(begin+replaySpan, to), &waiting)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []store.Batch
	for _, span := range spans {
		out = append(out, span...)
	}
	return out, nil
}

// errReplayBytes ends a replay whose changes would need too much memory at once.
var errReplayBytes = errors.New("the changes of the past are large")

// changesIn returns the batches of the source after a revision, up to the first one that
// reaches another revision. That one may have later revisions too. waiting has the bytes
// that all spans hold.
func (c *Cache) changesIn(ctx context.Context, after, to int64, waiting *atomic.Int64) ([]store.Batch, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.source.Watch(ctx, store.Scope{}, after)
	if err != nil {
		return nil, err
	}
	if err := w.RequestProgress(ctx); err != nil {
		return nil, err
	}
	var out []store.Batch
	for b := range w.Batches() {
		if waiting.Add(int64(b.Size())) > store.ChangeLogBytes {
			return nil, errReplayBytes
		}
		if out = append(out, b); b.Revision >= to {
			return out, nil
		}
	}
	if err := w.Err(); err != nil {
		return nil, err
	}
	return nil, errWatchEnded
}

// newer returns the part of a batch that is newer than a revision. some is false if there
// is nothing newer.
func newer(b store.Batch, than int64) (part store.Batch, some bool) {
	if b.Revision <= than {
		return b, false
	}
	old := 0
	for one := range b.Revisions() {
		if one.Revision > than {
			break
		}
		old += len(one.Events)
	}
	b.Events = b.Events[old:]
	return b, true
}
