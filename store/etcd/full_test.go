package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// small returns a store with a small quota, and a context that ends a test that hangs.
func small(t *testing.T) (context.Context, *Embedded, *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	log := slog.New(slog.DiscardHandler)
	e, err := StartEmbedded(ctx, EmbeddedOptions{Dir: t.TempDir(), Log: log, QuotaBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ctx, e, e.Store(DefaultPrefix, log)
}

// fill creates objects of a size, a few at a time, until the store refuses them.
func fill(ctx context.Context, t *testing.T, s *Store, few, size int) (kept []schema.Key) {
	t.Helper()
	for refused := 0; refused < 3; {
		ops := make([]store.Op, few)
		for i := range ops {
			obj := storetest.Large(t, "default", fmt.Sprintf("filling-%d", len(kept)+i), size)
			ops[i] = store.Op{Verb: store.OpCreate, Object: obj}
		}
		_, err := s.Txn(ctx, ops)
		if errors.Is(err, store.ErrFull) {
			refused++ // The database may yet free what it holds in duplicate.
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			kept = append(kept, op.Object.Key())
		}
	}
	return kept
}

// opens waits until a store accepts an object again.
func opens(ctx context.Context, t *testing.T, e *Embedded, s *Store, size int) {
	t.Helper()
	err := error(&store.Error{Kind: store.ErrFull})
	for errors.Is(err, store.ErrFull) && ctx.Err() == nil {
		_, err = s.Create(ctx, storetest.Large(t, "default", "after", size))
	}
	if err != nil {
		t.Fatalf("create after deletes: %v; %+v", err, e.Usage())
	}
}

// TestReaderKeepsPages checks that the pages freed by a compaction count as free once
// their last reader is gone, even if nothing is written any more.
func TestReaderKeepsPages(t *testing.T) {
	outside.Slow(t)
	ctx, e, s := small(t)
	kept := fill(ctx, t, s, 1, 500_000)
	// Finish the turn that knows of the refused writes before there is a reader: it
	// would rewrite the file.
	if err := e.keeper.turn(ctx); err != nil {
		t.Fatal(err)
	}
	reader := e.etcd.Server.Backend().ConcurrentReadTx()
	for _, key := range kept[:5] {
		if _, err := s.Delete(ctx, key, store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
	}
	for u := e.Usage(); u.History > 1<<20 || u.Live > int64(len(kept)-4)*500_000; u = e.Usage() {
		if ctx.Err() != nil {
			t.Fatalf("history stays: %+v", u)
		}
		time.Sleep(10 * time.Millisecond)
	}
	reader.RUnlock()
	for e.etcd.Server.Backend().OpenReadTxN() > 1 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // etcd closes the transaction a moment after its reader.
	}
	opens(ctx, t, e, s, 500_000)
	if u := e.Usage(); u.Defragmentations > 0 {
		t.Errorf("the file was written anew for it: %+v", u)
	}
}

// TestScatteredDeletes checks that deletes make room even if they leave no page of the
// database file empty.
func TestScatteredDeletes(t *testing.T) {
	outside.Slow(t)
	ctx, e, s := small(t)
	kept := fill(ctx, t, s, 100, 400)
	for len(kept) > 0 {
		var ops []store.Op
		for ; len(kept) > 0 && len(ops) < 100; kept = kept[min(2, len(kept)):] {
			ops = append(ops, store.Op{Verb: store.OpDelete, Key: kept[0]})
		}
		if _, err := s.Txn(ctx, ops); err != nil {
			t.Fatal(err)
		}
	}
	opens(ctx, t, e, s, 500_000)
}

// doubtful loses the first answer to a compaction.
type doubtful struct {
	clientv3.KV
	lost bool
}

func (d *doubtful) Compact(ctx context.Context, revision int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	resp, err := d.KV.Compact(ctx, revision, opts...)
	if err == nil && !d.lost {
		d.lost = true
		return nil, rpctypes.ErrTimeout
	}
	return resp, err
}

// TestCompactionInDoubt checks that a compaction whose answer was lost counts as done.
func TestCompactionInDoubt(t *testing.T) {
	ctx, e, s := small(t)
	e.stop()
	k := e.keeper
	k.client = &clientv3.Client{KV: &doubtful{KV: e.client.KV}}
	obj, err := s.Create(ctx, storetest.Large(t, "default", "a", 1000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(ctx, obj.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	revision, err := s.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	k.ledger.read(e.etcd.Server.Backend(), time.Now())
	if err := k.compact(ctx, revision); !errors.Is(err, rpctypes.ErrTimeout) {
		t.Fatalf("in doubt: %v", err)
	}
	if err := k.compact(ctx, revision); err != nil || k.ledger.history != 0 {
		t.Errorf("again: %v, history %d", err, k.ledger.history)
	}
}

// TestGivenWayIsNotForgotten checks that changed objects whose records were dropped for
// room are not left out.
func TestGivenWayIsNotForgotten(t *testing.T) {
	ctx, _, s := small(t)
	var then int64
	for i, write := range []func(context.Context, *schema.Object) (*schema.Object, error){s.Create, s.Update} {
		for _, name := range []string{"a", "b"} {
			o, err := write(ctx, storetest.Rule(t, "default", name, i))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				then = o.Revision()
			}
		}
	}
	for range 2 { // The creates, and the first of the updates.
		if _, err := s.giveWay(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.Changes(ctx, store.Scope{Namespace: "default"}, then); !errors.Is(err, store.ErrExpired) {
		t.Errorf("%d of 2 changes are known: %v", len(found), err)
	}
	b := store.Scope{Kind: storetest.Kind(t, "RouteRule"), Namespace: "default", Name: "b"}
	if found, err := s.Changes(ctx, b, then); err != nil || len(found) != 1 {
		t.Errorf("of the one that has a record: %d, %v", len(found), err)
	}
}
