package etcd_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// crowd returns n names. Many begin with others, and end where names of objects and of
// their records sort in different ways.
func crowd(random *rand.Rand, n int) []string {
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		name := "a"
		for range random.IntN(9) {
			name += []string{"a", "b", "0", "-a", "-0", ".a"}[random.IntN(6)]
		}
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

func txn(t *testing.T, s *etcd.Store, ops []store.Op) {
	t.Helper()
	for part := range slices.Chunk(ops, 60) {
		if _, err := s.Txn(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChangesOfACrowd checks that pages of any size have each object once that was
// changed, created or deleted, for more objects than are read at a time.
func TestChangesOfACrowd(t *testing.T) {
	outside.Slow(t)
	s := etcd.New(etcdtest.Start(t).Client(), "/test", quiet)
	random := rand.New(rand.NewPCG(7, 7))
	names := crowd(random, 1500)
	var create []store.Op
	for _, name := range names[:1300] {
		create = append(create, store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", name, 1)})
	}
	txn(t, s, create)
	since, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	var want []string
	for i, name := range names {
		obj := storetest.Rule(t, "default", name, 2)
		switch kind := random.IntN(3); {
		case i >= 1300:
			ops = append(ops, store.Op{Verb: store.OpCreate, Object: obj})
		case kind == 0:
			ops = append(ops, store.Op{Verb: store.OpDelete, Key: obj.Key()})
		case kind == 1:
			ops = append(ops, store.Op{Verb: store.OpUpdate, Object: obj})
		default:
			continue
		}
		want = append(want, name)
	}
	txn(t, s, ops)
	slices.Sort(want)
	for _, limit := range []int{1, 7, 400, 2000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			got := pagesOf(t, s, since, limit)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%d names, %d of them different, want %d", len(got), len(slices.Compact(slices.Clone(got))), len(want))
			}
		})
	}
}

func pagesOf(t *testing.T, s *etcd.Store, since int64, limit int) (names []string) {
	t.Helper()
	opts := store.ChangesOptions{Since: since, Limit: limit}
	for {
		page, more, err := s.ChangesPage(t.Context(), store.Scope{Namespace: "default"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			names = append(names, d.Key.Name)
		}
		if !more {
			return names
		}
		opts.After = page[len(page)-1].Key
		if opts.After == (schema.Key{}) {
			t.Fatal("a page without a key")
		}
	}
}
