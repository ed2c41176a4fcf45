package cache_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

var _ discovery.Source = (*cache.Cache)(nil)

var quiet = slog.New(slog.DiscardHandler)

// through writes to a store and reads from a cache over it, like the server.
type through struct {
	store.Interface
	cache *cache.Cache
}

func (t through) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	return t.cache.Get(ctx, key, opts)
}

func (t through) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	return t.cache.List(ctx, scope, opts)
}

func (t through) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	return t.cache.Watch(ctx, scope, after)
}

func (t through) Revision(ctx context.Context) (int64, error) { return t.cache.Revision(ctx) }

// start runs a cache over a source until the test ends.
func start(tb testing.TB, source store.Reader, opts cache.Options) *cache.Cache {
	tb.Helper()
	opts.Log = quiet
	c := cache.New(source, opts)
	run(tb, c)
	return c
}

func run(tb testing.TB, c *cache.Cache) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			tb.Errorf("Run ended with %v", err)
		}
	})
}

func cached(tb testing.TB, source store.Interface) store.Interface {
	return through{source, start(tb, source, cache.Options{})}
}

func TestContractOverMemory(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) store.Interface { return cached(tb, memory.New()) }, storetest.Capabilities{})
}

func TestContractOverEtcd(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	storetest.Run(t, func(tb testing.TB) store.Interface {
		return cached(tb, etcd.New(client, "/"+tb.Name(), quiet))
	}, storetest.Capabilities{Ops: etcd.DefaultLimits.Ops, Records: -1})
}

// justStarted reads from a cache that was started for the same call, and so holds no
// past.
type justStarted struct {
	store.Interface
	tb testing.TB
}

func (j justStarted) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	return start(j.tb, j.Interface, cache.Options{}).Get(ctx, key, opts)
}

func (j justStarted) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	return start(j.tb, j.Interface, cache.Options{}).List(ctx, scope, opts)
}

func (j justStarted) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	return start(j.tb, j.Interface, cache.Options{}).Watch(ctx, scope, after)
}

func TestContractJustStarted(t *testing.T) {
	compact := func(_ testing.TB, s store.Interface, revision int64) {
		s.(justStarted).Interface.(*memory.Store).Compact(revision)
	}
	storetest.Run(t, func(tb testing.TB) store.Interface {
		return justStarted{memory.New(), tb}
	}, storetest.Capabilities{Compact: compact})
}
