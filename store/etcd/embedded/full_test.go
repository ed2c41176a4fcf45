package embedded_test

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
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// small returns a store with a small quota, and a context that ends a test that hangs.
func small(t *testing.T) (context.Context, *embedded.Etcd, *etcd.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	log := slog.New(slog.DiscardHandler)
	e, err := embedded.Start(ctx, embedded.Options{Dir: t.TempDir(), Log: log, QuotaBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ctx, e, etcd.NewEmbedded(e, etcd.DefaultPrefix, log)
}

// fill creates objects of a size, a few at a time, until the store refuses them.
func fill(ctx context.Context, t *testing.T, s *etcd.Store, few, size int) (kept []schema.Key) {
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
func opens(ctx context.Context, t *testing.T, e *embedded.Etcd, s *etcd.Store, size int) {
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
	// Finish the round that knows of the refused writes before there is a reader: it
	// would rewrite the file.
	if err := embedded.Round(ctx, e); err != nil {
		t.Fatal(err)
	}
	reader := embedded.Backend(e).ConcurrentReadTx()
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
	for embedded.Backend(e).OpenReadTxN() > 1 && ctx.Err() == nil {
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
	compact := embedded.Compacting(e, &doubtful{KV: e.Client().KV})
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
	if _, err := compact(ctx, revision); !errors.Is(err, rpctypes.ErrTimeout) {
		t.Fatalf("in doubt: %v", err)
	}
	if history, err := compact(ctx, revision); err != nil || history != 0 {
		t.Errorf("again: %v, history %d", err, history)
	}
}
