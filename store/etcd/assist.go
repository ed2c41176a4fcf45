package etcd

import (
	"context"
	"time"
)

// retryRevision is how soon etcd is asked again for its revision when it could
// not tell.
const retryRevision = 500 * time.Millisecond

// RequestProgress implements store.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	select {
	case w.wishes <- struct{}{}:
	default: // One wish stands already.
	}
	return nil
}

// assist asks etcd what a watch needs to know, so that it never waits for an
// answer itself: up to where it must have come to fulfil a wish, and that the
// clock be moved past changes that were made without it.
func (w *watcher) assist(ctx context.Context) {
	for {
		select {
		case <-w.wishes:
			if !w.findTarget(ctx) {
				return
			}
		case revision := <-w.foreign:
			w.store.adopt(ctx, revision)
		case <-ctx.Done():
			return
		}
	}
}

// findTarget passes on the present revision of the store as soon as it can be
// known; false means that ctx ended before. The watch will come to it: every
// revision of the store is that of a change.
func (w *watcher) findTarget(ctx context.Context) bool {
	for {
		revision, err := w.store.Revision(ctx)
		if err == nil {
			select {
			case w.targets <- revision:
				return true
			case <-ctx.Done():
				return false
			}
		}
		w.log.Debug("progress of a watch not known", "error", err)
		select {
		case <-time.After(retryRevision):
		case <-ctx.Done():
			return false
		}
	}
}

// noteForeign has the clock moved past a change; the newest is enough.
func (w *watcher) noteForeign(revision int64) {
	select {
	case <-w.foreign:
	default:
	}
	w.foreign <- revision // Nobody else puts anything in.
}
