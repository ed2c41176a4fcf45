package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// joined follows all kinds with the watch of package client.
type joined struct {
	name    string
	random  *rand.Rand
	servers []store.Reader
	record  *record

	watch *consistency.Watch
	seen  atomic.Int64
}

func (j *joined) run(ctx context.Context, after int64) {
	j.begin(after)
	for ctx.Err() == nil {
		err := j.stream(ctx, pick(j.random, j.servers))
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, store.ErrExpired) {
			j.frame(consistency.Frame{Type: consistency.Expired, Revision: j.seen.Load()})
			j.relist(ctx)
			continue
		}
		j.frame(consistency.Frame{Type: consistency.Broken, Revision: j.seen.Load(), Detail: fmt.Sprint(err)})
		sleep(ctx, time.Duration(j.random.Int64N(int64(200*time.Millisecond))))
	}
}

// begin starts a new record of what is received.
func (j *joined) begin(after int64) {
	j.watch = &consistency.Watch{Name: j.name}
	j.record.watch(j.watch)
	j.seen.Store(after)
}

// relist lists anew, as a client does whose revision is no longer kept.
func (j *joined) relist(ctx context.Context) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		list, err := pick(j.random, j.servers).List(limited, store.Scope{}, store.ListOptions{})
		cancel()
		if err == nil {
			j.begin(list.Revision)
			return
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

func (j *joined) frame(f consistency.Frame) {
	f.At = j.record.now()
	j.watch.Frames = append(j.watch.Frames, f)
}

func (j *joined) stream(ctx context.Context, server store.Reader) error {
	after := j.seen.Load()
	j.frame(consistency.Frame{Type: consistency.Began, Revision: after})
	w, err := server.Watch(ctx, store.Scope{}, after)
	if err != nil {
		return err
	}
	for batch := range w.Batches() {
		for _, ev := range batch.Events {
			v := versionOf(ev.Object)
			j.frame(consistency.Frame{Type: consistency.FrameType(ev.Type), Revision: v.Revision, Key: v.Key, Value: v.Value})
		}
		j.record.events.Add(int64(len(batch.Events)))
		j.frame(consistency.Frame{Type: consistency.Bookmark, Revision: batch.Revision})
		j.seen.Store(batch.Revision)
		j.record.learn(batch.Revision)
	}
	return w.Err()
}

func versionOf(o *schema.Object) consistency.Version {
	return consistency.Version{Key: o.Key(), Revision: o.Revision(), Value: o.Meta.Annotations[valueKey]}
}

// informer is a cache over a client that is read from time to time. Each read is a list
// of the current state.
type informer struct {
	name   string
	cache  *cache.Cache
	record *record
	seen   atomic.Int64
}

func newInformer(name string, server store.Reader, r *record) *informer {
	return &informer{name: name, record: r, cache: cache.New(server, cache.Options{Log: slog.New(slog.DiscardHandler)})}
}

func (i *informer) run(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = i.cache.Run(ctx)
	}()
	defer func() { <-ended }()
	if i.cache.WaitForSync(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		i.look()
		sleep(ctx, 150*time.Millisecond)
	}
}

func (i *informer) look() {
	op := consistency.Operation{
		Client: i.name, Server: "cache", Verb: consistency.List, AtLeast: store.Any,
		Outcome: consistency.OK, Call: i.record.now(),
	}
	objects, revision, _ := i.cache.Snapshot()
	op.Return, op.Revision = i.record.now(), revision
	for _, o := range objects {
		op.Items = append(op.Items, versionOf(o))
	}
	i.record.operation(op)
	i.seen.Store(revision)
}

// clients returns a client for each server, made with package client.
func clients(servers []string) ([]store.Reader, error) {
	var all []store.Reader
	for _, url := range servers {
		c, err := client.New(url, client.Options{Timeout: requestLimit})
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
