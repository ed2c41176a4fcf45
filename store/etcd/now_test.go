package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestNowIsNeverBehind checks that Now of an embedded store is never before a revision
// that any client got: from an own write, from a write of another client that was in
// the way, or from a write whose answer was lost.
func TestNowIsNeverBehind(t *testing.T) {
	e := startEmbedded(t, t.TempDir())
	s := etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
	if _, ok := s.Now(t.Context()); ok {
		t.Error("a store without a clock knows its revision")
	}
	told := func(revision int64) error {
		if now, ok := s.Now(t.Context()); !ok || now < revision {
			return fmt.Errorf("told of revision %d, now is %d, %v", revision, now, ok)
		}
		return nil
	}
	const rounds, writers = 100, 4
	for i := range rounds {
		var all errgroup.Group
		for range writers {
			all.Go(func() error { return raced(t.Context(), s, storetest.Rule(t, "default", fmt.Sprint("a-", i), 1), told) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := s.Revision(t.Context())
	if now, _ := s.Now(t.Context()); err != nil || now != asked {
		t.Errorf("now is %d, etcd says %d, %v", now, asked, err)
	}
}

// raced creates and updates an object while others do the same.
func raced(ctx context.Context, s *etcd.Store, obj *schema.Object, told func(int64) error) error {
	made, err := s.Create(ctx, obj)
	if errors.Is(err, store.ErrExists) {
		// A faster writer has written before this store learned of it.
		made, err = s.Get(ctx, obj.Key(), store.ReadOptions{AtLeast: store.Any})
	}
	if err != nil {
		return err
	}
	if err := told(made.Revision()); err != nil {
		return err
	}
	same, err := s.Update(ctx, obj) // Changes nothing.
	if err != nil {
		return err
	}
	return told(same.Revision())
}

// TestNowAfterALostAnswer checks that a write that etcd has done counts even if its
// answer was lost.
func TestNowAfterALostAnswer(t *testing.T) {
	e := startEmbedded(t, t.TempDir())
	s := etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
	if _, err := s.Revision(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := e.Client()
	before, _ := s.Now(t.Context())
	lost := &losing{KV: client.KV}
	client.KV = lost
	obj := storetest.Rule(t, "default", "a", 1)
	if _, err := s.Create(t.Context(), obj); err == nil {
		t.Fatal("an answer that was lost has come")
	}
	if _, err := s.Create(t.Context(), obj); !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	if now, ok := s.Now(t.Context()); !ok || now <= before {
		t.Errorf("told that there is an object, now is %d as it was before it", now)
	}
}

// losing loses the answer to the first write.
type losing struct {
	clientv3.KV
	once sync.Once
}

func (l *losing) Txn(ctx context.Context) clientv3.Txn { return losingTxn{l.KV.Txn(ctx), l, false} }

type losingTxn struct {
	clientv3.Txn
	l     *losing
	write bool
}

func (t losingTxn) If(cs ...clientv3.Cmp) clientv3.Txn { return losingTxn{t.Txn.If(cs...), t.l, true} }
func (t losingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	return losingTxn{t.Txn.Then(ops...), t.l, t.write}
}
func (t losingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	return losingTxn{t.Txn.Else(ops...), t.l, t.write}
}

func (t losingTxn) Commit() (resp *clientv3.TxnResponse, err error) {
	resp, err = t.Txn.Commit()
	if t.write {
		t.l.once.Do(func() { resp, err = nil, context.DeadlineExceeded })
	}
	return resp, err
}

// TestNowOfAStoreOfMany checks that an etcd that others write to as well must be asked.
func TestNowOfAStoreOfMany(t *testing.T) {
	s := etcd.New(startEmbedded(t, t.TempDir()).Client(), etcd.DefaultPrefix, quiet)
	if _, err := s.Revision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Now(t.Context()); ok {
		t.Error("it knows its revision by itself")
	}
}
