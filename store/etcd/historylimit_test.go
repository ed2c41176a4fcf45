package etcd_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// remembered is the complete history: the state of each object from a revision on.
type remembered map[string][]moment

type moment struct {
	revision int64
	state    *schema.Object // nil for none
}

func (r remembered) at(name string, revision int64) *schema.Object {
	var state *schema.Object
	for _, m := range r[name] {
		if m.revision <= revision {
			state = m.state
		}
	}
	return state
}

// keeping returns a server that keeps some records of each object and has just started.
func keeping(t *testing.T, client *clientv3.Client, history int) *etcd.Store {
	t.Helper()
	s := etcd.New(client, "/test", quiet)
	s.Limit(etcd.Limits{History: history, Ops: 5})
	if err := etcd.Sweep(s, t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHistoryOfManyLimits runs servers that keep more or fewer records, one after the
// other and at the same time. It checks that every answer about the past is correct or
// says that it is unknown.
func TestHistoryOfManyLimits(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if _, err := client.Delete(t.Context(), "/test", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(seed, 0))
			limit := func() int { return []int{0, 1, 2, 3, 10}[random.IntN(5)] }
			servers := []*etcd.Store{keeping(t, client, limit()), keeping(t, client, limit())}
			was, first, last := make(remembered), int64(0), int64(0)
			for i := range 40 {
				s := servers[random.IntN(len(servers))]
				name := []string{"a", "b"}[random.IntN(2)]
				if last = was.change(t, s, random, name, i); i == 0 {
					first = last
				}
				switch random.IntN(8) {
				case 0, 1:
					settled(t, servers...)
				case 2:
					servers[random.IntN(len(servers))] = keeping(t, client, limit())
				case 3:
					if err := etcd.Sweep(s, t.Context(), time.Now().Add(31*24*time.Hour)); err != nil {
						t.Fatal(err)
					}
				}
			}
			servers = append(servers, keeping(t, client, 10))
			for _, s := range servers {
				was.judge(t, s, first-1, last)
			}
		})
	}
}

func settled(t *testing.T, servers ...*etcd.Store) {
	t.Helper()
	for _, s := range servers {
		if err := etcd.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// change creates or changes an object and returns the revision.
func (r remembered) change(t *testing.T, s *etcd.Store, random *rand.Rand, name string, i int) int64 {
	t.Helper()
	obj := storetest.Rule(t, "default", name, i)
	var err error
	gone := false
	switch moments := r[name]; {
	case len(moments) == 0 || moments[len(moments)-1].state == nil:
		obj, err = s.Create(t.Context(), obj)
	case random.IntN(3) == 0:
		obj, err = s.Delete(t.Context(), obj.Key(), store.Preconditions{})
		gone = true
	default:
		obj, err = s.Update(t.Context(), obj)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := moment{obj.Revision(), obj}
	if gone {
		m.state = nil
	}
	r[name] = append(r[name], m)
	return m.revision
}

// judge asks for each revision in each way.
func (r remembered) judge(t *testing.T, s *etcd.Store, first, last int64) {
	t.Helper()
	for revision := first; revision <= last; revision++ {
		for name, want := range r.all(revision) {
			key := storetest.Rule(t, "default", name, 1).Key()
			got, err := store.At(t.Context(), s, key, revision)
			agrees(t, fmt.Sprintf("%s at %d by its history", name, revision), want, got, err)
		}
		one := store.Scope{Kind: storetest.Kind(t, "RouteRule"), Namespace: "default", Name: "a"}
		for _, scope := range []store.Scope{{}, one} {
			r.judgeChanges(t, s, scope, revision)
		}
	}
}

func (r remembered) all(revision int64) map[string]*schema.Object {
	out := make(map[string]*schema.Object)
	for name := range r {
		out[name] = r.at(name, revision)
	}
	return out
}

func (r remembered) judgeChanges(t *testing.T, s *etcd.Store, scope store.Scope, revision int64) {
	t.Helper()
	found, err := s.Changes(t.Context(), scope, revision)
	if errors.Is(err, store.ErrExpired) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := r.all(1 << 40) // Objects that Changes leaves out have not changed.
	for _, d := range found {
		got[d.Key.Name] = d.Then
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if scope.Name == "" || scope.Name == name {
			agrees(t, fmt.Sprintf("%s at %d by the changes of %q since", name, revision, scope.Name), r.at(name, revision), got[name], nil)
		}
	}
}

func agrees(t *testing.T, what string, want, got *schema.Object, err error) {
	t.Helper()
	text := func(o *schema.Object) string {
		if o == nil {
			return "none"
		}
		return string(o.JSON())
	}
	switch {
	case errors.Is(err, store.ErrExpired):
	case err != nil && !errors.Is(err, store.ErrNotFound):
		t.Error(err)
	case text(want) != text(got):
		t.Errorf("%s: %s, it was %s", what, text(got), text(want))
	}
}
