package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// promptInterval is how soon etcd is asked again for progress. It drops such a
// request without a word while any watch of the same stream is catching up.
const promptInterval = 20 * time.Millisecond

// retryInterval is how soon etcd is asked again for its revision when it could
// not tell.
const retryInterval = 500 * time.Millisecond

// RequestProgress implements store.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	select {
	case w.wishes <- struct{}{}:
	default: // One wish stands already.
	}
	return nil
}

// prompt sees to it that each wish is answered: it finds out the revision of
// the store and asks etcd until the watch has told that it has come that far.
func (w *watcher) prompt(ctx context.Context) {
	for {
		select {
		case <-w.wishes:
		case <-ctx.Done():
			return
		}
		w.told.Store(0)
		target, ok := w.target(ctx)
		if !ok {
			return
		}
		w.pursue(ctx, target)
	}
}

// target is the present revision of the store, as soon as it can be known; ok
// is false when ctx ended before.
func (w *watcher) target(ctx context.Context) (revision int64, ok bool) {
	for {
		revision, err := w.store.Revision(ctx)
		if err == nil {
			return revision, true
		}
		w.log.Debug("progress of a watch not known", "error", err)
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return 0, false
		}
	}
}

func (w *watcher) pursue(ctx context.Context, target int64) {
	tick := time.NewTicker(promptInterval)
	defer tick.Stop()
	for w.told.Load() < target {
		w.promptOnce(ctx, target)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// promptOnce asks etcd only when it has more to tell: about a watch from beyond
// its newest revision it says nothing, however often it is asked.
func (w *watcher) promptOnce(ctx context.Context, target int64) {
	if w.seen.Load() >= target {
		select {
		case w.due <- struct{}{}:
		case <-ctx.Done():
		}
		return
	}
	// The context must name the stream that the watch is on.
	if err := w.store.client.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil {
		w.log.Debug("progress of a watch not asked for", "error", err)
	}
}
