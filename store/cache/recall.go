package cache

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/store"
)

// recall returns the changes of one revision, for watches that stopped inside it. known
// is false if the store no longer has what came before that revision. A source that is
// no Rewinder, such as a client, has no such watches, so recall then returns no
// changes.
func (c *Cache) recall(ctx context.Context, revision int64) (at store.Batch, known bool, err error) {
	at.Revision = revision
	if _, ok := c.source.(store.Rewinder); !ok || revision <= 1 { // A new store is at revision 1.
		return at, true, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.source.Watch(ctx, store.Scope{}, revision-1)
	if err == nil {
		err = w.RequestProgress(ctx)
	}
	if err == nil {
		at, err = firstOf(w, revision)
	}
	if errors.Is(err, store.ErrExpired) {
		return store.Batch{Revision: revision}, false, nil
	}
	return at, true, err
}

// firstOf returns the changes of a revision if a watch begins with it, or none.
func firstOf(w store.Watcher, revision int64) (store.Batch, error) {
	at := store.Batch{Revision: revision}
	b, ok := <-w.Batches()
	if !ok {
		return at, w.Err()
	}
	if b.Statuses != nil && b.Revision == revision {
		return b, nil
	}
	for one := range b.Revisions() {
		if one.Revision == revision {
			return one, nil
		}
		break
	}
	return at, nil
}
