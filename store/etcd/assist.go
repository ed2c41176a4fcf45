package etcd

import (
	"context"
	"time"
)

// retryRevision is how soon etcd is asked again for its revision when it could
// not tell; retryAdopt is how soon the clock is tried again.
const (
	retryRevision = 500 * time.Millisecond
	retryAdopt    = 2 * time.Second
)

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
	var said trouble
	again := w.adopt(ctx, &said) // What a former watch left.
	for {
		select {
		case <-w.wishes:
			if !w.findTarget(ctx) {
				return
			}
		case <-w.foreign:
			again = w.adopt(ctx, &said)
		case <-again:
			again = w.adopt(ctx, &said)
		case <-ctx.Done():
			return
		}
	}
}

// adopt tells when it must be tried again; nil is never.
func (w *watcher) adopt(ctx context.Context, said *trouble) <-chan time.Time {
	err := w.store.adopt(ctx)
	if said.isNew(err) && ctx.Err() == nil {
		w.log.Warn("a change in etcd that pilot-api did not make is known to this server, but the clock of all cannot be moved past it; trying until it can", "error", err)
	}
	if err == nil {
		return nil
	}
	return time.After(retryAdopt)
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

// noteForeign has the clock moved past a change.
func (w *watcher) noteForeign(revision int64) {
	w.store.drift(revision)
	select {
	case w.foreign <- struct{}{}:
	default: // It will be seen along with the one before.
	}
}
