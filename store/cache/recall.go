package cache

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/store"
)

// recall is what a revision of a store changed, for watches that broke off in the
// middle of it; known is false when the store no longer has what came before it. Who
// follows a server through a client resumes no watches of others.
func (c *Cache) recall(ctx context.Context, revision int64) (at store.Batch, known bool, err error) {
	at.Revision = revision
	if _, ok := c.source.(store.Rewinder); !ok || revision <= 1 { // A new store is at 1.
		return at, true, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.source.Watch(ctx, store.Scope{}, revision-1)
	if err == nil {
		err = w.RequestProgress(ctx)
	}
	if err == nil {
		at.Events, err = firstOf(w, revision)
	}
	if errors.Is(err, store.ErrExpired) {
		return at, false, nil
	}
	return at, true, err
}

// firstOf are the changes of the revision that a watch begins with.
func firstOf(w store.Watcher, revision int64) ([]store.Event, error) {
	b, ok := <-w.Batches()
	if !ok {
		return nil, w.Err()
	}
	for one := range b.Revisions() {
		if one.Revision == revision {
			return one.Events, nil
		}
		break
	}
	return nil, nil
}
