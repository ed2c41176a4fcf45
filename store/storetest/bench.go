package storetest

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/store"
)

// Bench runs the benchmarks of a store, the same for all implementations.
func Bench(b *testing.B, newStore New) {
	b.Run("Create", func(b *testing.B) { benchCreate(b, newSuite(b, newStore, Capabilities{})) })
	b.Run("Update", func(b *testing.B) { benchUpdate(b, newSuite(b, newStore, Capabilities{})) })
	b.Run("Get", func(b *testing.B) { benchGet(b, newSuite(b, newStore, Capabilities{})) })
	b.Run("GetParallel", func(b *testing.B) { benchGetParallel(b, newSuite(b, newStore, Capabilities{})) })
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("List%d", n), func(b *testing.B) { benchList(b, newSuite(b, newStore, Capabilities{}), n) })
	}
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("Watch%d", n), func(b *testing.B) { benchWatch(b, newSuite(b, newStore, Capabilities{}), n) })
	}
}

func benchCreate(b *testing.B, s *suite) {
	for i := 0; b.Loop(); i++ {
		s.create(Rule(s, "default", fmt.Sprintf("rule-%d", i), i))
	}
}

func benchUpdate(b *testing.B, s *suite) {
	s.create(Rule(s, "default", "a", 0))
	for i := 1; b.Loop(); i++ {
		s.update(Rule(s, "default", "a", i))
	}
}

func benchGet(b *testing.B, s *suite) {
	key := s.create(Rule(s, "default", "a", 0)).Key()
	for b.Loop() {
		s.get(key)
	}
}

func benchGetParallel(b *testing.B, s *suite) {
	key := s.create(Rule(s, "default", "a", 0)).Key()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(s.ctx, key, store.ReadOptions{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchList(b *testing.B, s *suite, n int) {
	for i := range n {
		s.create(Rule(s, "default", fmt.Sprintf("rule-%05d", i), i))
	}
	scope := store.Scope{Kind: Kind(s, "RouteRule")}
	for b.Loop() {
		if got := len(s.list(scope, store.ListOptions{}).Items); got != n {
			b.Fatalf("%d items, want %d", got, n)
		}
	}
}

// benchWatch measures the time from a write until the last of n watchers has received
// it.
func benchWatch(b *testing.B, s *suite, n int) {
	s.create(Rule(s, "default", "a", 0))
	var watchers []store.Watcher
	for range n {
		watchers = append(watchers, s.watch(store.Scope{}, 0))
	}
	for i := 1; b.Loop(); i++ {
		revision := s.update(Rule(s, "default", "a", i)).Revision()
		for _, w := range watchers {
			for got := int64(0); got < revision; {
				batch, ok := <-w.Batches()
				if !ok {
					b.Fatal(w.Err())
				}
				got = batch.Revision
			}
		}
	}
}
