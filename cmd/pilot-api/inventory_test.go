package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/etcd/roster"
	"github.com/pilot-api/pilot-api/store/memory"
)

// listed are the replicas of a test.
type listed struct {
	self    string
	mu      *sync.Mutex
	missing map[string]time.Time
}

func (l listed) Self() string                  { return l.self }
func (l listed) CutOff() (_ time.Time, _ bool) { return }

func (l listed) Others(context.Context) ([]replica.Replica, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []replica.Replica
	for name, since := range l.missing {
		if name != l.self {
			all = append(all, replica.Replica{Name: name, Missing: since})
		}
	}
	return all, nil
}

// TestInventoryOverRestartsAndReplicas: a replica that was killed knows its proxies when it
// starts again, one that moved to another replica meanwhile is not missed, and those of a
// replica that died are known to the others.
func TestInventoryOverRestartsAndReplicas(t *testing.T) {
	s := etcdtest.Start(t)
	client, err := etcd.Dial(t.Context(), etcd.DialOptions{Endpoints: []string{s.Endpoint()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	peers := listed{mu: &sync.Mutex{}, missing: map[string]time.Time{"m/a": {}, "m/b": {}}}
	begin := func(name string) (*inventory, *discovery.Publisher) {
		t.Helper()
		own := peers
		own.self = name
		quiet := slog.New(slog.DiscardHandler)
		i := newInventory(roster.New(client, "/p", time.Hour, quiet), own, false, quiet)
		cached := cache.New(memory.New(), cache.Options{Log: quiet})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = cached.Run(ctx) })
		proxies := discovery.New(discovery.Options{Source: cached, Others: i})
		i.load(t.Context(), proxies)
		running.Go(func() {
			if err := proxies.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); running.Wait() })
		if err := proxies.Await(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		return i, proxies
	}
	connect := func(p *discovery.Publisher, n int) {
		t.Helper()
		one, err := simulated.Connect(p, simulated.Node(n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.Leave)
	}
	// look writes, and reads what the others have written.
	look := func(i *inventory) {
		t.Helper()
		if _, err := i.roster.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.look(t.Context(), false)
	}
	absent := func(when string, p *discovery.Publisher, want ...int) {
		t.Helper()
		all := p.Absent()
		if len(all) != len(want) {
			t.Errorf("%s %d are absent, want %d: %+v", when, len(all), len(want), all)
			return
		}
		for i, n := range want {
			if all[i].Node.ID != simulated.Node(n) || !all[i].Lost {
				t.Errorf("%s absent is %+v, want lost %s", when, all[i], simulated.Node(n))
			}
		}
	}

	a, proxies := begin("m/a")
	for n := range 3 {
		connect(proxies, n)
	}
	look(a)
	// It is killed, and starts again.
	a, proxies = begin("m/a")
	absent("after a restart", proxies, 0, 1, 2)
	connect(proxies, 0)
	absent("when one is back", proxies, 1, 2)
	b, others := begin("m/b")
	connect(others, 1)
	look(b)
	look(a)
	absent("when one is at another replica", proxies, 2)
	absent("at the other replica", others)

	died := time.Now()
	peers.mu.Lock()
	peers.missing["m/a"] = died
	peers.mu.Unlock()
	// A caller that learns that the replica is missing also learns its proxies.
	if _, err := (peersInInventory{b.peers, b}).Others(t.Context()); err != nil {
		t.Fatal(err)
	}
	absent("at the other replica, when the first has died", others, 0, 2)
	if at := others.Absent()[0].LastSeen; !at.Equal(died) {
		t.Errorf("seen last at %s, and the replica at %s", at, died)
	}
	connect(others, 0)
	absent("when its proxy has come", others, 2)
	a.clear(t.Context(), "m/a")
	look(b)
	absent("when the pages of all other replicas have expired", others)
}
