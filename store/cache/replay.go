package cache

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/store"
)

// replaySpan is how many revisions one watch of a replay reads. etcd sends at most 1,000
// revisions at a time to a watch that begins in the past, and reads all that follow them
// for each time, 100 ms apart. A single watch over 50,000 revisions takes 20 seconds.
const replaySpan = 1000

// replay brings the copy from the past to a revision that the source has. Several watches
// read the changes at the same time. An error leaves the copy at the end of some revision.
func (c *Cache) replay(ctx context.Context, to int64) error {
	after := c.changes.Revision()
	if to-after <= replaySpan {
		return nil // The watch that follows reads these changes as fast.
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	spans := make([][]store.Batch, (to-after+replaySpan-1)/replaySpan)
	group, ctx := errgroup.WithContext(ctx)
	for i := range spans {
		begin := after + int64(i)*replaySpan
		group.Go(func() (err error) {
			spans[i], err = c.changesIn(ctx, begin, min(begin+replaySpan, to))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, span := range spans {
		for _, b := range span {
			if b, some := newer(b, c.changes.Revision()); some {
				if err := c.apply(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// changesIn returns the batches of the source after a revision, up to the first one that
// reaches another revision. That one may have later revisions too.
func (c *Cache) changesIn(ctx context.Context, after, to int64) ([]store.Batch, error) {
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
		if out = append(out, b); b.Revision >= to {
			return out, nil
		}
	}
	return nil, w.Err()
}

// newer returns the part of a batch that is newer than a revision. Batches of two spans
// may overlap. some is false if there is nothing newer.
func newer(b store.Batch, than int64) (part store.Batch, some bool) {
	if b.Revision <= than {
		return b, false
	}
	if b.Statuses != nil {
		return b, true
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
