package etcd

import (
	"context"
	"time"
)

// retryRevision is the delay before etcd is asked for its revision again after a
// failure. retryAdopt is the delay before the clock is moved again after a failure.
const (
	retryRevision = 500 * time.Millisecond
	retryAdopt    = 2 * time.Second
)

// RequestProgress implements store.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	select {
	case w.wishes <- struct{}{}:
	default: // A request is already waiting.
	}
	return nil
}

// followProgress makes the requests to etcd that a watch needs, so that the watch itself never
// waits for an answer. It finds the revision at which a progress request is fulfilled,
// and moves the clock past changes that were made without it.
func (w *watcher) followProgress(ctx context.Context) {
	var said trouble
	again := w.adopt(ctx, &said) // Changes that an earlier watch left.
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

// adopt moves the clock. It returns when to try again; nil means never.
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

// findTarget passes the present revision of the store to the watch as soon as it is
// known. It returns false if ctx ended first. The watch will reach the revision,
// because every revision of the store is that of a change.
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

// noteForeign requests that the clock be moved past a change.
func (w *watcher) noteForeign(revision int64) {
	w.store.drift(revision)
	select {
	case w.foreign <- struct{}{}:
	default: // The waiting request covers this change too.
	}
}
