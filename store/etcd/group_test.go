package etcd_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestTogether: writes that share a transaction of etcd have one revision, and each
// an outcome of its own; a watch is told of them at once, and the history has each.
func TestTogether(t *testing.T) {
	for _, limits := range []etcd.Limits{etcd.DefaultLimits, {Ops: 63}} {
		s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
		s.Limit(limits)
		there := map[string]*schema.Object{}
		for _, name := range []string{"taken", "old", "gone"} {
			made, err := s.Create(t.Context(), storetest.Rule(t, "default", name, 1))
			if err != nil {
				t.Fatal(err)
			}
			there[name] = made
		}
		revision, err := s.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), store.Scope{}, revision)
		if err != nil {
			t.Fatal(err)
		}
		got, succeeded, err := s.Together(t.Context(),
			store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "new", 1)},
			store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "taken", 2)},
			store.Op{Verb: store.OpUpdate, Object: storetest.Rule(t, "default", "old", 2)},
			store.Op{Verb: store.OpDelete, Key: there["gone"].Key()})
		if err != nil {
			t.Fatal(err)
		}
		if want := []bool{true, false, true, true}; !slices.Equal(succeeded, want) {
			t.Fatalf("succeeded: %v, want %v", succeeded, want)
		}
		batch := <-w.Batches()
		var told []string
		for _, ev := range batch.Events {
			told = append(told, string(ev.Type)+" "+ev.Object.Meta.Name)
			if ev.Object.Revision() != batch.Revision || got[0].Revision() != batch.Revision {
				t.Errorf("%s at %d in a batch of %d, created at %d", ev.Object.Key(), ev.Object.Revision(), batch.Revision, got[0].Revision())
			}
		}
		slices.Sort(told)
		if want := []string{"ADDED new", "DELETED gone", "MODIFIED old"}; !slices.Equal(told, want) {
			t.Errorf("a watch was told %v, want %v", told, want)
		}
		if newest, err := s.Revision(t.Context()); err != nil || newest != batch.Revision {
			t.Errorf("the clock shows %d (%v), want %d", newest, err, batch.Revision)
		}
		if limits.History == 0 {
			continue
		}
		for name, want := range map[string]int{"new": 1, "taken": 1, "old": 2, "gone": 2} {
			versions, err := s.History(t.Context(), storetest.Rule(t, "default", name, 1).Key())
			if err != nil || len(versions) != want {
				t.Errorf("%s has %d versions (%v), want %d", name, len(versions), err, want)
			}
		}
	}
}

// TestAllFail: a batch of which nothing is written still moves the clock to where a
// watch comes.
func TestAllFail(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	for _, name := range []string{"a", "b"} {
		if _, err := s.Create(t.Context(), storetest.Rule(t, "default", name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, succeeded, err := s.Together(t.Context(),
		store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "a", 2)},
		store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "b", 2)})
	if err != nil || slices.Contains(succeeded, true) {
		t.Fatalf("succeeded: %v, %v", succeeded, err)
	}
	newest, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for reached := int64(0); reached < newest; {
		batch := <-w.Batches()
		if reached = batch.Revision; len(batch.Events) > 0 {
			t.Fatalf("told of %v", batch.Events)
		}
	}
}

// TestRefusedTogether: what etcd takes one by one only is done one by one.
func TestRefusedTogether(t *testing.T) {
	client := etcdtest.Start(t).Client()
	client.KV = fewOps{client.KV}
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	made, succeeded, err := s.Together(t.Context(),
		store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "a", 1)},
		store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "default", "b", 1)})
	if err != nil || slices.Contains(succeeded, false) || made[0].Revision() >= made[1].Revision() {
		t.Errorf("%v, %v, %v", made, succeeded, err)
	}
}

// fewOps is an etcd that takes no transactions within one.
type fewOps struct{ clientv3.KV }

type fewOpsTxn struct {
	clientv3.Txn
	nested bool
}

func (k fewOps) Txn(ctx context.Context) clientv3.Txn { return &fewOpsTxn{Txn: k.KV.Txn(ctx)} }

func (x *fewOpsTxn) If(cs ...clientv3.Cmp) clientv3.Txn { x.Txn = x.Txn.If(cs...); return x }

func (x *fewOpsTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.nested = slices.ContainsFunc(ops, clientv3.Op.IsTxn)
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *fewOpsTxn) Else(ops ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Else(ops...); return x }

func (x *fewOpsTxn) Commit() (*clientv3.TxnResponse, error) {
	if x.nested {
		return nil, rpctypes.ErrTooManyOps
	}
	return x.Txn.Commit()
}

// TestBatches: a batch has each object once, in the order of those who wait, and its
// bounds.
func TestBatches(t *testing.T) {
	s := etcd.New(nil, etcd.DefaultPrefix, quiet)
	write := func(name string) store.Op {
		return store.Op{Verb: store.OpUpdate, Object: storetest.Rule(t, "default", name, 1)}
	}
	large := func(name string) store.Op {
		return store.Op{Verb: store.OpUpdate, Object: storetest.Large(t, "default", name, 300<<10)}
	}
	for _, c := range []struct {
		most int
		ops  []store.Op
		want [][]string
	}{
		{64, []store.Op{write("a"), write("b"), write("a"), write("c")}, [][]string{{"a", "b", "c"}, {"a"}}},
		{2, []store.Op{write("a"), write("b"), write("c")}, [][]string{{"a", "b"}, {"c"}}},
		{64, []store.Op{large("a"), large("b"), write("c")}, [][]string{{"a", "c"}, {"b"}}},
	} {
		var got [][]string
		for _, batch := range s.Batches(c.most, c.ops...) {
			var names []string
			for _, key := range batch {
				names = append(names, key.Name)
			}
			got = append(got, names)
		}
		if !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("batches of %d at most: %v, want %v", c.most, got, c.want)
		}
	}
}

// TestOneLeaves: who no longer waits for its write does no harm to others.
func TestOneLeaves(t *testing.T) {
	client := etcdtest.Start(t).Client()
	gate := &gate{KV: client.KV, arrived: make(chan struct{}, 100), open: make(chan struct{})}
	client.KV = gate
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	const others = 8
	ended := make(chan error, others)
	for i := range others {
		go func() {
			_, err := s.Create(t.Context(), storetest.Rule(t, "default", string(rune('a'+i)), 1))
			ended <- err
		}()
	}
	<-gate.arrived
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.Create(ctx, storetest.Rule(t, "default", "z", 1))
		left <- err
	}()
	cancel()
	// Canceled before it was sent, unavailable while it waited, or nobody knows.
	if err := <-left; err == nil {
		t.Error("a write was acknowledged that etcd has not seen")
	}
	close(gate.open)
	for range others {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// gate is an etcd that does transactions when it is open.
type gate struct {
	clientv3.KV
	arrived, open chan struct{}
}

type gatedTxn struct {
	clientv3.Txn
	gate *gate
	ctx  context.Context
}

func (g *gate) Txn(ctx context.Context) clientv3.Txn { return &gatedTxn{g.KV.Txn(ctx), g, ctx} }

func (x *gatedTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { x.Txn = x.Txn.If(cs...); return x }
func (x *gatedTxn) Then(ops ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Then(ops...); return x }
func (x *gatedTxn) Else(ops ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Else(ops...); return x }

func (x *gatedTxn) Commit() (*clientv3.TxnResponse, error) {
	x.gate.arrived <- struct{}{}
	select {
	case <-x.gate.open:
		return x.Txn.Commit()
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
}

// TestNobodyWaits: when all of a batch have left, its request ends.
func TestNobodyWaits(t *testing.T) {
	client := etcdtest.Start(t).Client()
	gate := &gate{KV: client.KV, arrived: make(chan struct{}, 100), open: make(chan struct{})}
	client.KV = gate
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-gate.arrived
		cancel()
	}()
	if _, err := s.Create(ctx, storetest.Rule(t, "default", "a", 1)); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("left while under way: %v", err)
	}
	go func() {
		<-gate.arrived
		close(gate.open)
	}()
	if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "b", 1)); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
