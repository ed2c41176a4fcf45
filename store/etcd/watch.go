package etcd

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/pilot-api/pilot-api/store"
)

// Limits of the batches that wait for the reader of a watch: their number, and their bytes
// as measured by store.Batch.Size. If a reader falls further behind, its watch ends with
// store.ErrSlow and drops the waiting batches.
const (
	queueLength = 8 << 10
	queueBytes  = 64 << 20
)

// Watch implements store.Reader.
//
// Whatever the scope, the watch asks etcd for all changes of the store, on a stream of its
// own; docs/decisions/014-one-feed.md has the reasons. One answer of etcd holds one or more
// whole revisions. etcd splits an answer only for clients that ask for fragments, and this
// client does not. After a lost connection, the client resumes by itself behind the last
// change that it received.
func (s *Store) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	newest, reached, err := s.clock(ctx)
	switch {
	case err != nil:
		return nil, err
	case after > reached:
		return nil, store.NotReached(after, newest)
	case after == 0:
		after = newest
	}
	// A watch that ends must also release its etcd stream.
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		store: s, scope: scope, cancel: cancel, log: s.log, seen: after,
		out:    make(chan store.Batch),
		wishes: make(chan struct{}, 1), targets: make(chan int64), foreign: make(chan struct{}, 1),
	}
	key, span := s.keys.changes()
	go w.run(ctx, s.client.Watch(alone(ctx), key, span, clientv3.WithRev(after+1), clientv3.WithPrevKV()))
	go w.followProgress(ctx)
	return w, nil
}

// alone makes the client open a stream for one watch. The client shares streams among
// contexts with equal metadata.
func alone(ctx context.Context) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, "pilot-api-watch", uuid.NewString())
	// The member must be part of a working cluster. Otherwise it ends the watch and the
	// client looks for another member.
	return clientv3.WithRequireLeader(ctx)
}

type watcher struct {
	store  *Store
	scope  store.Scope
	cancel context.CancelFunc
	log    *slog.Logger

	out    chan store.Batch
	queue  []store.Batch // for out
	size   int           // of queue, in bytes
	seen   int64         // everything up to here was put in the queue
	target int64         // revision of a progress request, 0 for none

	wishes  chan struct{} // has a token for a progress request
	targets chan int64    // receives the revision of a progress request
	foreign chan struct{} // has a token for a change that did not move the clock

	store.TerminalError
}

func (w *watcher) Batches() <-chan store.Batch { return w.out }

func (w *watcher) run(ctx context.Context, answers clientv3.WatchChan) {
	err := w.follow(ctx, answers)
	w.cancel()
	w.End(err)
	close(w.out)
}

func (w *watcher) follow(ctx context.Context, answers clientv3.WatchChan) error {
	for {
		out, first := w.first()
		var err error
		select {
		case out <- first: // A reader that waits comes before further answers.
			w.sent(first)
			continue
		default:
		}
		select {
		case out <- first:
			w.sent(first)
		case answer, ok := <-answers:
			if !ok {
				return ended(ctx)
			}
			err = w.take(answer)
		case w.target = <-w.targets:
		}
		if err != nil {
			return err
		}
		if w.target > 0 && w.seen >= w.target {
			w.target = 0
			w.queue = append(w.queue, store.Batch{Revision: w.seen})
		}
	}
}

// sent removes the first batch of the queue.
func (w *watcher) sent(first store.Batch) {
	w.queue[0] = store.Batch{} // The array stays alive.
	w.queue = w.queue[1:]
	w.size -= first.Size()
}

// first returns the next batch for the reader; the channel is nil if there is none.
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
	batches, err := w.batches(answer)
	if err != nil {
		return err
	}
	for _, batch := range batches {
		if err := w.put(batch); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) put(batch store.Batch) error {
	w.queue = append(w.queue, batch)
	w.size += batch.Size()
	// A reader that keeps up gets its batch, however large.
	if n := len(w.queue); n > 1 && (n > queueLength || w.size > queueBytes) {
		return &store.Error{Kind: store.ErrSlow, Detail: fmt.Sprintf(
			"%d batches of changes (%d bytes) wait to be read, up to revision %d", n, w.size, batch.Revision)}
	}
	w.seen = batch.Revision
	return nil
}
