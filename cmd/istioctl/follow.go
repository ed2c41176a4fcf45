package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// follower shows the objects of a source, then their changes.
type follower struct {
	source   store.Reader
	selector selector
	display
	// statuses tells how the objects stand until ctx ends or its stream does.
	statuses func(ctx context.Context, tell func(client.Stated)) error
}

// run goes on until ctx ends, which is how a watch is meant to end, or until
// something cannot be shown.
func (f *follower) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var turn sync.Mutex
	var broken error
	show := func(one func() error) {
		turn.Lock()
		defer turn.Unlock()
		if broken == nil {
			if broken = one(); broken != nil {
				stop(broken)
			}
		}
	}
	view := cache.New(f.source, cache.Options{Log: slog.New(slog.DiscardHandler)})
	view.Handle(nil, selected(f.selector, func(e store.Event) { show(func() error { return f.event(e) }) }))
	var beside sync.WaitGroup
	if f.status != nil {
		beside.Go(func() { f.followStatuses(ctx, func(o client.Stated) { show(func() error { return f.status(o) }) }) })
	}
	_ = view.Run(ctx) // It is the context's error, nothing else ends it.
	beside.Wait()
	return broken
}

// statusPause is the time after which a stream of statuses that has ended is begun
// again. That the connection is lost tells the watch of the objects.
const statusPause = time.Second

func (f *follower) followStatuses(ctx context.Context, tell func(client.Stated)) {
	for ctx.Err() == nil {
		_ = f.statuses(ctx, tell)
		select {
		case <-ctx.Done():
		case <-time.After(statusPause):
		}
	}
}
