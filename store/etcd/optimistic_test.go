package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// counting counts transactions. Every request of a store is one.
type counting struct {
	clientv3.KV
	n *atomic.Int64
}

func (c counting) Txn(ctx context.Context) clientv3.Txn {
	c.n.Add(1)
	return c.KV.Txn(ctx)
}

func TestRequestsOfAWrite(t *testing.T) {
	client := etcdtest.Start(t).Client()
	requests := new(atomic.Int64)
	client.KV = counting{client.KV, requests}
	failure := errors.New("no")

	old := func(_ *etcd.Store, was *schema.Object) *schema.Object { return was }
	fresh := func(s *etcd.Store, was *schema.Object) *schema.Object {
		now, err := s.Get(context.Background(), was.Key(), store.ReadOptions{})
		if err != nil {
			return nil
		}
		requests.Add(-1)
		return now
	}
	none := func(*etcd.Store, *schema.Object) *schema.Object { return nil }
	type guess = func(*etcd.Store, *schema.Object) *schema.Object

	update := func(s *etcd.Store, now *schema.Object) error {
		_, err := s.Update(t.Context(), storetest.Rule(t, "default", now.Meta.Name, 9))
		return err
	}
	same := func(s *etcd.Store, now *schema.Object) error {
		got, err := s.Update(t.Context(), now)
		if err == nil && got.Revision() != now.Revision() {
			t.Errorf("an update without a change made revision %d of %d", got.Revision(), now.Revision())
		}
		return err
	}
	function := func(result *schema.Object, err error) func(*etcd.Store, *schema.Object) error {
		return func(s *etcd.Store, now *schema.Object) error {
			_, err := s.UpdateFunc(t.Context(), now.Key(), func(*schema.Object) (*schema.Object, error) { return result, err })
			return err
		}
	}
	remove := func(pre func(now *schema.Object) store.Preconditions) func(*etcd.Store, *schema.Object) error {
		return func(s *etcd.Store, now *schema.Object) error {
			_, err := s.Delete(t.Context(), now.Key(), pre(now))
			return err
		}
	}
	anyOne := func(*schema.Object) store.Preconditions { return store.Preconditions{} }
	newest := func(now *schema.Object) store.Preconditions {
		return store.Preconditions{ResourceVersion: now.Meta.ResourceVersion}
	}
	another := func(*schema.Object) store.Preconditions { return store.Preconditions{ResourceVersion: "1"} }

	for _, tc := range []struct {
		name  string
		guess guess
		write func(s *etcd.Store, now *schema.Object) error
		want  int64
		err   error
	}{
		{"update without a guess", none, update, 2, nil},
		{"update by a fresh guess", fresh, update, 1, nil},
		{"update by an old guess", old, update, 2, nil},
		{"delete without a guess", none, remove(anyOne), 2, nil},
		{"delete by a fresh guess", fresh, remove(anyOne), 1, nil},
		{"delete by an old guess", old, remove(anyOne), 2, nil},
		{"delete of the newest, by a fresh guess", fresh, remove(newest), 1, nil},
		{"delete of the newest, by an old guess", old, remove(newest), 2, nil},
		{"delete of another, by a fresh guess", fresh, remove(another), 1, store.ErrConflict},
		{"nothing to change, by a fresh guess", fresh, same, 1, nil},
		{"nothing to change, by an old guess", old, same, 1, nil},
		{"a function that fails", fresh, function(nil, failure), 1, failure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := etcd.New(client, "/"+t.Name(), quiet)
			was, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
			if err != nil {
				t.Fatal(err)
			}
			now, err := s.Update(t.Context(), storetest.Rule(t, "default", "a", 2))
			if err != nil {
				t.Fatal(err)
			}
			s = etcd.New(client, "/"+t.Name(), quiet)
			s.Guess(func(schema.Key) *schema.Object { return tc.guess(s, was) })
			requests.Store(0)
			if err := tc.write(s, now); !errors.Is(err, tc.err) {
				t.Errorf("got error %v, want %v", err, tc.err)
			}
			if got := requests.Load(); got != tc.want {
				t.Errorf("%d requests, want %d", got, tc.want)
			}
		})
	}
}

// TestOwnWritesAreGuesses checks that a store uses its own writes if changes are seen
// late or never, so that each write is one request.
func TestOwnWritesAreGuesses(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, "/own", quiet)
	was, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 0))
	if err != nil {
		t.Fatal(err)
	}
	for name, peek := range map[string]func(schema.Key) *schema.Object{
		"late":  func(schema.Key) *schema.Object { return was },
		"never": func(schema.Key) *schema.Object { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s.Guess(peek)
			value := 0
			change := func(s *etcd.Store) {
				t.Helper()
				value++
				if _, err := s.Update(t.Context(), storetest.Rule(t, "default", "a", value)); err != nil {
					t.Fatal(err)
				}
			}
			change(s)
			requests := new(atomic.Int64)
			kv := client.KV
			client.KV = counting{kv, requests}
			defer func() { client.KV = kv }()
			for range 5 {
				change(s)
			}
			if n := requests.Load(); n != 5 {
				t.Errorf("5 writes took %d requests", n)
			}
			change(etcd.New(client, "/own", quiet)) // Another replica.
			requests.Store(0)
			change(s)
			if n := requests.Load(); n != 2 {
				t.Errorf("a write after that of another replica took %d requests, want 2", n)
			}
			if _, err := s.Delete(t.Context(), was.Key(), store.Preconditions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 0)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestContractUnderWrongGuesses checks that no wrong guess shows in any result.
func TestContractUnderWrongGuesses(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	var count atomic.Int32
	storetest.Run(t, func(testing.TB) store.Interface {
		s := &forgetful{Store: etcd.New(client, fmt.Sprintf("/wrong-%d", count.Add(1)), quiet), past: map[schema.Key][]*schema.Object{}}
		s.Guess(s.peek)
		return s
	}, compacting(client))
}

func (f *forgetful) behind() *etcd.Store { return f.Store }

// forgetful guesses every state that an object ever had, and none, in turn.
type forgetful struct {
	*etcd.Store

	mu   sync.Mutex
	past map[schema.Key][]*schema.Object
	turn int
}

func (f *forgetful) peek(key schema.Key) *schema.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	states := f.past[key]
	if i := f.turn % (len(states) + 1); i < len(states) {
		return states[i]
	}
	return nil
}

func (f *forgetful) note(objs ...*schema.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objs {
		if o != nil {
			f.past[o.Key()] = append(f.past[o.Key()], o)
		}
	}
}

func (f *forgetful) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	out, err := f.Store.Create(ctx, obj)
	f.note(out)
	return out, err
}

func (f *forgetful) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	out, err := f.Store.Update(ctx, obj)
	f.note(out)
	return out, err
}

func (f *forgetful) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	out, err := f.Store.UpdateFunc(ctx, key, change)
	f.note(out)
	return out, err
}

func (f *forgetful) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	out, err := f.Store.Delete(ctx, key, pre)
	f.note(out)
	return out, err
}

func (f *forgetful) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	out, err := f.Store.Txn(ctx, ops)
	f.note(out...)
	return out, err
}
