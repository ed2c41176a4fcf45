package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// promptInterval is how soon etcd is asked again for progress. It drops such a
// request without a word while any watch of the same stream is catching up.
const promptInterval = 20 * time.Millisecond

// RequestProgress implements store.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	select {
	case w.wishes <- struct{}{}:
	default: // One wish stands already.
	}
	return nil
}

// prompt sees to it that each wish is answered: it finds out the revision of
// the store and asks etcd until the watch has come that far.
func (w *watcher) prompt(ctx context.Context) {
	for {
		select {
		case <-w.wishes:
		case <-ctx.Done():
			return
		}
		target, err := w.store.Revision(ctx)
		if err != nil {
			w.log.Debug("progress of a watch not known", "error", err)
			continue
		}
		w.pursue(ctx, target)
	}
}

func (w *watcher) pursue(ctx context.Context, target int64) {
	tick := time.NewTicker(promptInterval)
	defer tick.Stop()
	for {
		// The context must name the stream that the watch is on.
		if err := w.store.client.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil {
			w.log.Debug("progress of a watch not asked for", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if w.seen.Load() >= target {
			return
		}
	}
}
