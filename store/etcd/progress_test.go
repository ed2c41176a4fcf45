package etcd_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// leaderless is an etcd that refuses some reads, as during an election.
type leaderless struct {
	clientv3.KV
	refusals atomic.Int32 // still to come
}

func (l *leaderless) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if l.refusals.Add(-1) >= 0 {
		return nil, rpctypes.ErrNoLeader
	}
	return l.KV.Get(ctx, key, opts...)
}

// TestWishForProgressOutlivesTrouble checks that a watch answers a progress request
// even if etcd's revision was unknown at first.
func TestWishForProgressOutlivesTrouble(t *testing.T) {
	client := etcdtest.Start(t).Client()
	reads := &leaderless{KV: client.KV}
	client.KV = reads
	w, err := etcd.New(client, etcd.DefaultPrefix, quiet).Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	reads.refusals.Store(2)
	if err := w.RequestProgress(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case b, ok := <-w.Batches():
		if !ok || len(b.Events) != 0 {
			t.Errorf("got %v, watch ended with %v", b, w.Err())
		}
	case <-time.After(30 * time.Second):
		t.Error("the wish was forgotten")
	}
}

// TestNeighboursMakeNoRevision checks that a key that only begins like ours is no
// change, and leads a watch to no revision that the store does not have.
func TestNeighboursMakeNoRevision(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), etcd.DefaultPrefix+"/objects-backup", "x"); err != nil {
		t.Fatal(err)
	}
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if b := <-w.Batches(); b.Revision != made.Revision() || len(b.Events) != 1 {
		t.Errorf("first came %d events up to revision %d, want the one of %d", len(b.Events), b.Revision, made.Revision())
	}
}
