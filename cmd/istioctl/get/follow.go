package get

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// follower shows the objects of a source, then their changes.
type follower struct {
	source   *cli.Link
	selector targets.Selector
	display
	// statuses reports the states of the objects until ctx or its stream ends.
	statuses func(ctx context.Context, tell func(client.ObjectWithStatus)) error
}

// run continues until ctx ends, which is the normal end of a watch, or until output fails
// or the server denies the reads.
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
	f.source.OnEnd(func(reason error) { show(func() error { return reason }) })
	cached := cache.New(f.source, cache.Options{Log: slog.New(slog.DiscardHandler)})
	cached.Handle(nil, selected(f.selector, func(e store.Event) { show(func() error { return f.event(e) }) }))
	var beside sync.WaitGroup
	if f.status != nil {
		beside.Go(func() {
			f.followStatuses(ctx, func(o client.ObjectWithStatus) { show(func() error { return f.status(o) }) })
		})
	}
	_ = cached.Run(ctx) // The error is that of ctx, because nothing else ends Run.
	beside.Wait()
	return broken
}

// statusPause is the delay before an ended stream of statuses starts again. A lost
// connection is reported by the watch of the objects.
const statusPause = time.Second

func (f *follower) followStatuses(ctx context.Context, tell func(client.ObjectWithStatus)) {
	for ctx.Err() == nil {
		_ = f.statuses(ctx, tell)
		select {
		case <-ctx.Done():
		case <-time.After(statusPause):
		}
	}
}
