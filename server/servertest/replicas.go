package servertest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// Followed is a server whose proxies follow the written objects.
func Followed(t *testing.T) *World {
	t.Helper()
	return StartReplica(t, memory.New())
}

// StartReplica returns one of several replicas over a store.
func StartReplica(t *testing.T, mem *memory.Store, change ...func(*server.Options)) *World {
	t.Helper()
	view := cache.New(mem, cache.Options{Log: slog.New(slog.DiscardHandler)})
	return ReplicaOf(t, mem, view, discovery.Options{Source: view, CheckPatience: time.Minute}, change...)
}

// ReplicaOf returns a replica with its own discovery.
func ReplicaOf(t *testing.T, mem *memory.Store, view *cache.Cache, options discovery.Options, change ...func(*server.Options)) *World {
	t.Helper()
	proxies := discovery.New(options)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = view.Run(ctx) })
	running.Go(func() { _ = proxies.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	w := Start(t, append(change, func(o *server.Options) {
		o.Store, o.Reads, o.Discovery = store.Strict(mem), view, proxies
	})...)
	w.Store, w.Discovery = mem, proxies
	return w
}

// Register is the list of replicas as one of them sees it.
type Register struct {
	Mu       sync.Mutex
	Known    map[string]string
	Missing  map[string]time.Time
	CutSince time.Time // zero if it is not
}

func (r *Register) Self() string { return "here" }

func (r *Register) Others(context.Context) ([]replica.Replica, error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	var all []replica.Replica
	for name, at := range r.Known {
		all = append(all, replica.Replica{Name: name, URL: at, Missing: r.Missing[name]})
	}
	return all, nil
}

func (r *Register) CutOff() (time.Time, bool) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.CutSince, !r.CutSince.IsZero()
}

func (r *Register) Leave(name string) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	delete(r.Known, name)
}

// Nothing is a source that has read no objects yet.
type Nothing struct{}

func (Nothing) Snapshot() ([]*schema.Object, int64, bool)  { return nil, 0, false }
func (Nothing) Since(int64) ([]schema.Change, int64, bool) { return nil, 0, false }
func (Nothing) Changed() <-chan struct{}                   { return nil }
func (Nothing) Err() error                                 { return nil }
