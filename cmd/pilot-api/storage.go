package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// storage is the store of objects in etcd, the cache that follows it, and the replicas that
// share it.
type storage struct {
	backend
	objects *etcd.Store
	cached  *cache.Cache
	lag     *cache.Probe
	others  replicas
	stay    task // keeps this replica in the register
}

// openStorage opens the etcd, and announces this replica as self. The caller must close
// the result.
func openStorage(ctx context.Context, b *base, at *listeners) (*storage, error) {
	etcd, err := openEtcd(ctx, *b.options, b.log)
	if err != nil {
		return nil, err
	}
	s := &storage{backend: etcd, objects: etcd.store(*b.options, b.log)}
	s.cached = cache.New(s.objects, cache.Options{Log: b.log})
	s.objects.Guess(s.cached.Peek)
	s.lag = cache.NewProbe(s.cached)
	registerStoreMetrics(b.registry, etcd, s.cached, s.lag)
	if s.others, s.stay, err = etcd.replicas(*b.options, b.advertised(at.api.Addr()), b.registry, b.log); err != nil {
		s.close(b.log)
		return nil, err
	}
	return s, nil
}

// tasks keep the storage current.
func (s *storage) tasks(b *base) []task {
	return []task{
		s.cached.Run, s.lag.Run, s.watch, s.stay, s.objects.KeepHistory,
		func(ctx context.Context) error { return s.admin(ctx, *b.options, b.log) },
		func(ctx context.Context) error { return greet(ctx, *b.options, s.objects, b.log) },
		func(ctx context.Context) error { return settleStatuses(ctx, *b.options, s.objects, s.others, b.log) },
	}
}

// greetTimeout is the time that an external etcd has for its first answer before the
// log says that the server is waiting for it.
const greetTimeout = 2 * time.Second

// greet logs early if the external etcd does not answer. Everything else waits for it
// silently.
func greet(ctx context.Context, o options, objects store.Reader, log *slog.Logger) error {
	if len(o.etcdEndpoints) == 0 {
		return nil
	}
	first, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if _, err := objects.Revision(first); err != nil && ctx.Err() == nil {
		log.Warn("etcd does not answer; trying until it does", "endpoints", o.etcdEndpoints, "error", err)
	}
	return nil
}
