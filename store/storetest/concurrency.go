package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var concurrencyCases = []testCase{
	{name: "of many creates of one key one wins", run: func(s *suite) {
		var won atomic.Int32
		s.together(8, func(i int) error {
			_, err := s.Create(s.ctx, Rule(s, "default", "a", i))
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, store.ErrExists) {
				return err
			}
			return nil
		})
		if won.Load() != 1 {
			s.Errorf("%d creates won", won.Load())
		}
	}},
	{name: "no conditional update is lost", run: func(s *suite) {
		const writers, each = 4, 10
		s.create(Rule(s, "default", "counter", 0))
		s.together(writers, func(int) error {
			for range each {
				if err := s.increment(); err != nil {
					return err
				}
			}
			return nil
		})
		if got := precedence(s.get(Rule(s, "default", "counter", 0).Key())); got != writers*each {
			s.Errorf("counted to %d, want %d", got, writers*each)
		}
	}},
	{name: "unconditional updates all succeed", run: func(s *suite) {
		s.create(Rule(s, "default", "a", 0))
		s.together(8, func(i int) error {
			_, err := s.Update(s.ctx, Rule(s, "default", "a", i+1))
			return err
		})
		if got := s.get(Rule(s, "default", "a", 0).Key()); got.Meta.Generation != 9 {
			s.Errorf("generation %d after 8 updates", got.Meta.Generation)
		}
	}},
	{name: "reads never go back behind an acknowledged write", run: readYourWrites},
	{name: "watches see every write once, in order", run: watchUnderWrites},
	{name: "lists never show half a transaction", run: atomicLists},
}

// together runs f n times concurrently.
func (s *suite) together(n int, f func(i int) error) {
	s.Helper()
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	if err := g.Wait(); err != nil {
		s.Fatal(err)
	}
}

func precedence(obj *schema.Object) int {
	var spec struct{ Precedence int }
	if err := json.Unmarshal(obj.SpecJSON(), &spec); err != nil {
		return -1
	}
	return spec.Precedence
}

// increment counts up by a read and a conditional update, and retries after a conflict.
func (s *suite) increment() error {
	for {
		obj, err := s.Get(s.ctx, schema.Key{Kind: "RouteRule", Namespace: "default", Name: "counter"}, store.ReadOptions{})
		if err != nil {
			return err
		}
		next := Rule(s, "default", "counter", precedence(obj)+1)
		_, err = s.Update(s.ctx, at(s, next, obj.Meta.ResourceVersion))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// readYourWrites checks one register with concurrent readers. While one goroutine
// writes increasing values, each value that a reader gets must be at least the one
// acknowledged before its read began, and must never decrease.
func readYourWrites(s *suite) {
	var acknowledged atomic.Int64
	acknowledged.Store(s.create(Rule(s, "default", "a", 0)).Revision())
	key := Rule(s, "default", "a", 0).Key()
	done := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		defer close(done)
		for i := range 50 {
			obj, err := s.Update(s.ctx, Rule(s, "default", "a", i+1))
			if err != nil {
				return err
			}
			acknowledged.Store(obj.Revision())
		}
		return nil
	})
	reads := []func() (int64, error){
		func() (int64, error) {
			obj, err := s.Get(s.ctx, key, store.ReadOptions{})
			if err != nil {
				return 0, err
			}
			return obj.Revision(), nil
		},
		func() (int64, error) {
			list, err := s.List(s.ctx, store.Scope{}, store.ListOptions{})
			if err != nil {
				return 0, err
			}
			return list.Items[0].Revision(), nil
		},
		func() (int64, error) { return s.Revision(s.ctx) },
	}
	for _, read := range reads {
		g.Go(func() error { return onlyForward(read, &acknowledged, done) })
	}
	if err := g.Wait(); err != nil {
		s.Fatal(err)
	}
}

func onlyForward(read func() (int64, error), acknowledged *atomic.Int64, done <-chan struct{}) error {
	last := int64(0)
	for {
		select {
		case <-done:
			return nil
		default:
		}
		least := max(last, acknowledged.Load())
		got, err := read()
		if err != nil {
			return err
		}
		if got < least {
			return fmt.Errorf("read revision %d after %d was acknowledged or read", got, least)
		}
		last = got
	}
}

func watchUnderWrites(s *suite) {
	const writers, each = 4, 25
	start := s.revision()
	early := s.watch(store.Scope{}, start)
	var mu sync.Mutex
	written := map[int64]string{}
	s.together(writers, func(writer int) error {
		for i := range each {
			obj, err := s.Create(s.ctx, Rule(s, "default", fmt.Sprintf("rule-%d-%d", writer, i), 1))
			if err != nil {
				return err
			}
			mu.Lock()
			written[obj.Revision()] = event(store.Added, obj)
			mu.Unlock()
		}
		return nil
	})
	var want []string
	end := s.revision()
	for r := start; r <= end; r++ {
		if text, ok := written[r]; ok {
			want = append(want, text)
		}
	}
	for _, w := range []store.Watcher{early, s.watch(store.Scope{}, start)} {
		if diff := cmp.Diff(want, happened(s.until(w, end))); diff != "" {
			s.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// atomicLists changes two objects in one transaction and checks that no list splits it.
func atomicLists(s *suite) {
	s.txn(creating(Rule(s, "default", "a", 0)), creating(Rule(s, "other", "b", 0)))
	done := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		defer close(done)
		for i := range 30 {
			ops := []store.Op{updating(Rule(s, "default", "a", i+1)), updating(Rule(s, "other", "b", i+1))}
			if _, err := s.Txn(s.ctx, ops); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for {
			list, err := s.List(s.ctx, store.Scope{}, store.ListOptions{})
			if err != nil {
				return err
			}
			if a, b := list.Items[0], list.Items[1]; a.Revision() != b.Revision() || precedence(a) != precedence(b) {
				return fmt.Errorf("list at %d has %v", list.Revision, names(list.Items))
			}
			select {
			case <-done:
				return nil
			default:
			}
		}
	})
	if err := g.Wait(); err != nil {
		s.Fatal(err)
	}
}
