package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store"
)

// The bounds of what waits for a reader of a watch, in batches and in the sense
// of store.Batch.Size. One that falls behind further is cut off with
// store.ErrSlow, and loses what waited.
const (
	queueLength = 1024
	queueBytes  = 64 << 20
)

// Watch implements store.Reader.
//
// etcd answers a watch with whole revisions: one answer holds one or more of
// them, and is only split when the client asks for fragments, which this one
// does not. The client resumes by itself after a lost connection.
func (s *Store) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	newest, err := s.Revision(ctx)
	switch {
	case err != nil:
		return nil, err
	case after > newest:
		return nil, &store.Error{Kind: store.ErrFuture, Detail: fmt.Sprintf(
			"revision %d is not reached, the newest is %d", after, newest)}
	case after == 0:
		after = newest
	}
	// A watch that is cut off must let go of its etcd stream too.
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		store: s, scope: scope, cancel: cancel, log: s.log,
		out: make(chan store.Batch), wishes: make(chan struct{}, 1), due: make(chan struct{}),
	}
	w.seen.Store(after)
	// The member must be part of a working cluster, else it ends the watch
	// and the client looks for another one.
	ctx = clientv3.WithRequireLeader(ctx)
	name, span := s.keys.span(scope)
	span = append(span, clientv3.WithRev(after+1), clientv3.WithPrevKV(), clientv3.WithProgressNotify())
	go w.run(ctx, name, span)
	go w.prompt(ctx)
	return w, nil
}

type watcher struct {
	store  *Store
	scope  store.Scope
	cancel context.CancelFunc
	log    *slog.Logger

	out    chan store.Batch
	queue  []store.Batch // for out
	size   int           // of queue, in bytes
	seen   atomic.Int64  // everything up to here was put in the queue
	wishes chan struct{} // holds a wish for progress
	told   atomic.Int64  // the last batch since a wish was taken up
	due    chan struct{} // asks follow to say what was seen

	store.Ending
}

func (w *watcher) Batches() <-chan store.Batch { return w.out }

func (w *watcher) run(ctx context.Context, name string, span []clientv3.OpOption) {
	err := w.follow(ctx, w.store.client.Watch(ctx, name, span...))
	w.cancel()
	w.End(err)
	close(w.out)
}

func (w *watcher) follow(ctx context.Context, answers clientv3.WatchChan) error {
	for {
		out, first := w.first()
		var err error
		select {
		case out <- first:
			w.queue[0] = store.Batch{} // The array lives on.
			w.queue = w.queue[1:]
			w.size -= first.Size()
		case answer, ok := <-answers:
			if !ok {
				return ended(ctx)
			}
			err = w.take(answer)
		case <-w.due:
			err = w.put(store.Batch{Revision: w.seen.Load()})
		}
		if err != nil {
			return err
		}
	}
}

// first is what a reader gets next; the channel is nil when there is nothing.
func (w *watcher) first() (chan<- store.Batch, store.Batch) {
	if len(w.queue) == 0 {
		return nil, store.Batch{}
	}
	return w.out, w.queue[0]
}

func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return &store.Error{Kind: store.ErrUnavailable, Detail: "etcd ended the watch"}
}

func (w *watcher) take(answer clientv3.WatchResponse) error {
	batch, err := w.batch(answer)
	// Progress may be an answer to a question of before the last changes.
	if err != nil || batch.Revision < w.seen.Load() {
		return err
	}
	return w.put(batch)
}

func (w *watcher) put(batch store.Batch) error {
	w.queue = append(w.queue, batch)
	w.size += batch.Size()
	// A reader that keeps up gets its batch, however large.
	if n := len(w.queue); n > 1 && (n > queueLength || w.size > queueBytes) {
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d batches of changes (%d bytes) wait to be read, up to revision %d", n, w.size, batch.Revision)}
	}
	w.seen.Store(batch.Revision)
	w.told.Store(batch.Revision)
	return nil
}
