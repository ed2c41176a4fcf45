package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// queueLength bounds the batches that wait for a reader of a watch. One that
// falls behind further is cut off with store.ErrSlow.
const queueLength = 1024

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
		queue: make(chan store.Batch, queueLength), wishes: make(chan struct{}, 1), due: make(chan struct{}),
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

	queue  chan store.Batch
	seen   atomic.Int64  // everything up to here is in the queue
	wishes chan struct{} // holds a wish for progress
	told   atomic.Int64  // the last batch since a wish was taken up
	due    chan struct{} // asks follow to say what was seen

	store.Ending
}

func (w *watcher) Batches() <-chan store.Batch { return w.queue }

func (w *watcher) run(ctx context.Context, name string, span []clientv3.OpOption) {
	err := w.follow(ctx, w.store.client.Watch(ctx, name, span...))
	w.cancel()
	w.End(err)
	close(w.queue)
}

func (w *watcher) follow(ctx context.Context, answers clientv3.WatchChan) error {
	for {
		var batch store.Batch
		select {
		case answer, ok := <-answers:
			if !ok {
				return ended(ctx)
			}
			var err error
			if batch, err = w.batch(answer); err != nil {
				return err
			}
		case <-w.due:
			batch.Revision = w.seen.Load()
		}
		// Progress may be an answer to a question of before the last changes.
		if batch.Revision < w.seen.Load() {
			continue
		}
		if err := w.put(batch); err != nil {
			return err
		}
	}
}

func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return &store.Error{Kind: store.ErrUnavailable, Detail: "etcd ended the watch"}
}

func (w *watcher) put(batch store.Batch) error {
	select {
	case w.queue <- batch:
		w.seen.Store(batch.Revision)
		w.told.Store(batch.Revision)
		return nil
	default:
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d batches of changes wait to be read, up to revision %d", queueLength, w.seen.Load())}
	}
}

// batch is one answer of etcd. Its revision is 0 when it says nothing.
func (w *watcher) batch(answer clientv3.WatchResponse) (store.Batch, error) {
	if err := answer.Err(); err != nil {
		return store.Batch{}, translate(err, schema.Key{})
	}
	if answer.IsProgressNotify() {
		return store.Batch{Revision: answer.Header.Revision}, nil
	}
	var batch store.Batch
	for _, ev := range answer.Events {
		batch.Revision = ev.Kv.ModRevision
		change, err := w.event(ev)
		if err != nil {
			return store.Batch{}, err
		}
		if change.Object != nil && w.scope.Contains(change.Object.Key()) {
			batch.Events = append(batch.Events, change)
		}
	}
	return batch, nil
}

// event is one change. It has no object when what is in etcd cannot be read:
// that must not end the watch of all others.
func (w *watcher) event(ev *clientv3.Event) (store.Event, error) {
	var out store.Event
	var err error
	switch {
	case ev.Type == clientv3.EventTypePut && ev.IsCreate():
		out.Type = store.Added
		out.Object, err = stored(ev.Kv)
	case ev.Type == clientv3.EventTypePut:
		out.Type = store.Modified
		out.Object, err = stored(ev.Kv)
	case ev.PrevKv == nil:
		// The one thing that a deletion must tell was compacted away.
		return out, &store.Error{Kind: store.ErrExpired, Detail: fmt.Sprintf(
			"the state before revision %d was compacted: list again", ev.Kv.ModRevision)}
	default:
		out.Type = store.Deleted
		out.Object, err = schema.Stored(ev.PrevKv.Value, ev.Kv.ModRevision)
	}
	if err == nil && ev.PrevKv != nil {
		out.Previous, err = stored(ev.PrevKv)
	}
	if err != nil {
		w.log.Error("change in etcd left out", "key", string(ev.Kv.Key), "revision", ev.Kv.ModRevision, "error", err)
		return store.Event{}, nil
	}
	return out, nil
}
