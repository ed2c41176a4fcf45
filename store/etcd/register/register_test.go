package register_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

var quiet = slog.New(slog.DiscardHandler)

// member is one member of a register, with its log.
type member struct {
	*register.Register
	t      *testing.T
	client *clientv3.Client
	link   *testbed.Link // to etcd
	leave  func()

	mu  sync.Mutex
	log bytes.Buffer
}

func (m *member) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(p)
}

func (m *member) logs(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(m.log.String(), text)
}

// join keeps a replica in the register until the test ends or it leaves.
func join(t *testing.T, s *etcdtest.Server, self register.Replica) *member {
	t.Helper()
	link, err := testbed.NewLink(s.Endpoint(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	client, err := etcd.Dial(t.Context(), etcd.DialOptions{Endpoints: []string{"http://" + link.Addr()}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	m := &member{t: t, client: client, link: link}
	m.Register = register.New(client, "/p", self, slog.New(slog.NewTextHandler(m, nil)))
	m.Hurry(2*time.Second, time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	m.leave = func() { cancel(); running.Wait() }
	t.Cleanup(m.leave)
	return m
}

// sees waits until this member sees the given names in the register, with a question
// mark after the missing ones.
func (m *member) sees(want ...string) []register.Replica {
	m.t.Helper()
	var all []register.Replica
	m.until(strings.Join(want, " "), func(ctx context.Context) (err error) {
		if all, err = m.List(ctx); err != nil {
			return err
		}
		var got []string
		for _, r := range all {
			if !r.Missing.IsZero() {
				r.Name += "?"
			}
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("there are %q", got)
		}
		return nil
	})
	return all
}

func (m *member) says(text string) {
	m.t.Helper()
	m.until(text, func(context.Context) error {
		if !m.logs(text) {
			return fmt.Errorf("not in the log")
		}
		return nil
	})
}

func (m *member) until(what string, try func(context.Context) error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	if err := testbed.Until(ctx, what, try); err != nil {
		m.t.Fatalf("%v\n%s", err, &m.log)
	}
}

func replicaCalled(name string) register.Replica {
	return register.Replica{Name: name, URL: "http://" + name + ":8080", Host: name, Instance: "of-" + name}
}

// TestReplicaCutOff checks that a replica whose heartbeats do not arrive is missing to
// the others until it is back, and knows that it is cut off. One that leaves is not
// missing.
func TestReplicaCutOff(t *testing.T) {
	outside.Slow(t)
	for _, mode := range []testbed.Mode{testbed.Refusing, testbed.Silent} {
		t.Run(mode.String(), func(t *testing.T) {
			began := time.Now()
			s := etcdtest.Start(t)
			a, b := join(t, s, replicaCalled("a")), join(t, s, replicaCalled("b"))
			a.sees("a", "b")
			b.link.Set(mode)
			b.link.Break()
			all := a.sees("a", "b?")
			since := all[1].Missing
			if since.Before(began.Add(-2*time.Second)) || since.After(time.Now()) {
				t.Errorf("missing since %s, the test began at %s", since, began)
			}
			if again := a.sees("a", "b?"); !again[1].Missing.Equal(since) {
				t.Errorf("missing since %s, and then since %s", since, again[1].Missing)
			}
			a.says("a replica is missing since")
			a.until("the count of who is missing", func(context.Context) error {
				if a.Missing() != 1 || a.There() != 0 {
					return fmt.Errorf("%d missing, %d there", a.Missing(), a.There())
				}
				return nil
			})
			b.says("this replica is cut off from etcd")
			if _, is := b.CutOff(); !is {
				t.Error("it does not know that it is cut off")
			}
			b.link.Set(testbed.Open)
			a.sees("a", "b")
			b.says("in the register again")
			b.leave()
			a.sees("a")
		})
	}
}

// TestReplicaWithoutLease checks that a replica whose leases are revoked comes back by
// itself.
func TestReplicaWithoutLease(t *testing.T) {
	outside.Slow(t)
	s := etcdtest.Start(t)
	a := join(t, s, replicaCalled("a"))
	join(t, s, replicaCalled("b"))
	a.sees("a", "b")
	for _, key := range []string{"/p/replicas/b", "/p/replicas-known/b"} {
		found, err := a.client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.client.Revoke(t.Context(), clientv3.LeaseID(found.Kvs[0].Lease)); err != nil {
			t.Fatal(err)
		}
		a.until("another lease of "+key, func(ctx context.Context) error {
			again, err := a.client.Get(ctx, key)
			if err == nil && (len(again.Kvs) == 0 || again.Kvs[0].Lease == found.Kvs[0].Lease) {
				err = fmt.Errorf("there are %v", again.Kvs)
			}
			return err
		})
	}
	a.sees("a", "b")
}

// TestReplicaForgotten checks that a dead replica is missing for a while and then
// forgotten.
func TestReplicaForgotten(t *testing.T) {
	s := etcdtest.Start(t)
	a := join(t, s, replicaCalled("a"))
	lease, err := a.client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(t.Context(), "/p/replicas-known/b", `{"name":"b"}`, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	a.sees("a", "b?")
	if _, err := a.client.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	a.sees("a")
	known, err := a.client.Get(t.Context(), "/p/replicas-known/a")
	if err != nil {
		t.Fatal(err)
	}
	left, err := a.client.TimeToLive(t.Context(), clientv3.LeaseID(known.Kvs[0].Lease))
	if err != nil || left.GrantedTTL != 60 {
		t.Errorf("a's entry is kept for %+v, %v", left, err)
	}
}

// TestReplicasOfOneName checks that both are in the register and that one of them logs
// a warning.
func TestReplicasOfOneName(t *testing.T) {
	s := etcdtest.Start(t)
	first, second := replicaCalled("a"), replicaCalled("a")
	second.Instance = "later"
	a, b := join(t, s, first), join(t, s, second)
	a.until("two names", func(ctx context.Context) error {
		all, err := a.List(ctx)
		if err == nil && (len(all) != 2 || a.Self().Name == b.Self().Name) {
			err = fmt.Errorf("there are %+v", all)
		}
		return err
	})
	if !a.logs("another replica calls itself as this one") && !b.logs("another replica calls itself as this one") {
		t.Error("nobody complains")
	}
}

// TestReplicaBack checks that a replica that comes back takes its old place.
func TestReplicaBack(t *testing.T) {
	s := etcdtest.Start(t)
	a, b := join(t, s, replicaCalled("a")), join(t, s, replicaCalled("b"))
	a.sees("a", "b")
	b.link.Set(testbed.Refusing) // It cannot announce that it leaves.
	b.link.Break()
	b.leave()
	again := replicaCalled("b")
	again.Instance = "second life"
	c := join(t, s, again)
	a.until("the second life", func(ctx context.Context) error {
		all, err := a.List(ctx)
		if err == nil && (len(all) != 2 || all[1].Instance != again.Instance || !all[1].Missing.IsZero()) {
			err = fmt.Errorf("there are %+v", all)
		}
		return err
	})
	if c.Self().Name != "b" {
		t.Errorf("it calls itself %s", c.Self().Name)
	}
}

// TestAddressesOfReplicas checks the warnings of a replica that cannot be reached at
// its advertised address and of those that cannot reach it. Correct addresses give
// none.
func TestAddressesOfReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		a, b  register.Replica
		tells [2]string
	}{
		"one address": {
			register.Replica{Name: "a", URL: "http://10.0.0.9:8080", Host: "a"}, register.Replica{Name: "b", URL: "http://10.0.0.9:8080", Host: "b"},
			[2]string{"advertise one address", "advertise one address"},
		},
		"loopback on two machines": {
			register.Replica{Name: "a/127.0.0.1:8080", URL: "http://127.0.0.1:8080", Host: "a"}, register.Replica{Name: "b/127.0.0.1:8080", URL: "http://127.0.0.1:8080", Host: "b"},
			[2]string{"advertise one address", "advertise one address"},
		},
		"loopback of one": {
			register.Replica{Name: "a", URL: "http://10.0.0.1:8080", Host: "a"}, register.Replica{Name: "b", URL: "http://[::1]:8081", Host: "b"},
			[2]string{"not reached from here", "address of its own machine"},
		},
		"loopback of one machine": {
			register.Replica{Name: "a", URL: "http://localhost:8080", Host: "a"}, register.Replica{Name: "b", URL: "http://127.0.0.1:8081", Host: "a"},
			[2]string{},
		},
		"as it should be": {replicaCalled("a"), replicaCalled("b"), [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := etcdtest.Start(t)
			a, b := join(t, s, c.a), join(t, s, c.b)
			for i, m := range []*member{a, b} {
				m.until("the other one", func(context.Context) error {
					if m.There() != 1 {
						return fmt.Errorf("it sees %d", m.There())
					}
					return nil
				})
				if tells := c.tells[i]; tells != "" {
					m.says(tells)
				} else if m.logs("advertise") {
					t.Errorf("%s complains:\n%s", m.Self().Name, &m.log)
				}
			}
		})
	}
}

// TestCutOffByWhichClock checks that setting the wall clock cuts off no replica.
func TestCutOffByWhichClock(t *testing.T) {
	since, is := register.New(nil, "/p", replicaCalled("a"), quiet).CutOff()
	if is || since == since.Round(0) { // It has lost its monotonic reading.
		t.Errorf("cut off: %v, since %v", is, since)
	}
}
