package embedded

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// database is etcd's own, but it commits to its file only on request. Until then,
// writes are in buffers.
type database struct {
	backend.Backend
	kv mvcc.KV
}

func newDatabase(t *testing.T) database {
	t.Helper()
	b := backend.New(backend.BackendConfig{
		Path: filepath.Join(t.TempDir(), "db"), Logger: zap.NewNop(), UnsafeNoFsync: true,
		BatchInterval: time.Hour, BatchLimit: 1 << 30, MmapSize: 64 << 20,
	})
	kv := mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})
	t.Cleanup(func() {
		kv.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return database{b, kv}
}

// put writes some keys in one transaction.
func (d database) put(keys ...string) {
	tx := d.kv.Write(traceutil.TODO())
	for _, key := range keys {
		tx.Put([]byte(key), []byte("value"), lease.NoLease)
	}
	tx.End()
}

// get reads once. It leaves a copy of the buffers for the next read.
func (d database) get() {
	d.kv.Read(mvcc.ConcurrentReadTxMode, traceutil.TODO()).End()
}

// TestLedgerReads checks that the ledger counts every change once, wherever the change
// is between etcd's buffers and its file during the read.
func TestLedgerReads(t *testing.T) {
	many := make([]string, readAtOnce+readAtOnce/2)
	for i := range many {
		many[i] = fmt.Sprintf("key-%d", i)
	}
	for name, write := range map[string]func(d database, read func()){
		"in the file": func(d database, _ func()) {
			d.put("a")
			d.put("a")
			d.ForceCommit()
		},
		"in the buffer": func(d database, _ func()) {
			d.put("a")
			d.put("a")
		},
		"in the file and in a copy of the buffer": func(d database, _ func()) {
			d.put("a")
			d.put("b")
			d.put("a")
			d.get()
			d.ForceCommit()
		},
		"committed between two readings": func(d database, read func()) {
			d.put("a")
			d.put("a")
			read()
			d.ForceCommit()
			d.put("a")
		},
		"more than one step in the file, and some in the buffer": func(d database, _ func()) {
			for _, key := range append(many, many...) {
				d.put(key)
			}
			d.ForceCommit()
			d.put("a")
			d.put("a")
		},
		"more than one step in the buffer, and some in the file": func(d database, _ func()) {
			d.put("a")
			d.put("a")
			d.ForceCommit()
			for _, key := range append(many, many...) {
				d.put(key)
			}
		},
		"more than one step in one revision": func(d database, _ func()) {
			d.put(many...)
			d.put(many...)
		},
		"a cut within a revision": func(d database, _ func()) {
			d.put("a", "b", "c")
			for range readAtOnce {
				d.put("a", "b", "c")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, l := newDatabase(t), newLedger()
			write(d, func() { l.read(d, time.Now()) })
			l.read(d, time.Now())
			l.isRight(t, d)
		})
	}
}

// TestLedgerReadsAnything does the possible operations in any order.
func TestLedgerReadsAnything(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			key := func() string { return fmt.Sprintf("key-%d", random.IntN(20)) }
			d, l := newDatabase(t), newLedger()
			for range 2000 {
				switch random.IntN(8) {
				case 0:
					d.get()
				case 1:
					d.ForceCommit()
				case 2:
					l.read(d, time.Now())
				case 3:
					d.kv.DeleteRange([]byte(key()), nil)
				case 4:
					d.put("head", key())
				default:
					d.put(key())
				}
			}
			l.read(d, time.Now())
			l.isRight(t, d)
		})
	}
}

// isRight compares a ledger with one that read the whole file at once.
func (l *ledger) isRight(t *testing.T, d database) {
	t.Helper()
	d.ForceCommit()
	want := newLedger()
	tx := d.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	err := tx.UnsafeForEach(schema.Key, func(key, value []byte) error {
		revision := mvcc.BytesToRev(key)
		want.add(revision.Main, keyOf(value), int64(len(key)+len(value)), mvcc.IsTombstone(key), time.Time{})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.live != want.live || l.history != want.history || len(l.sizes) != len(want.sizes) || len(l.past) != len(want.past) {
		t.Errorf("present %d in %d keys, history %d in %d revisions; want %d in %d, %d in %d",
			l.live, len(l.sizes), l.history, len(l.past), want.live, len(want.sizes), want.history, len(want.past))
	}
	for i := 1; i < len(l.past); i++ {
		if l.past[i].revision <= l.past[i-1].revision {
			t.Fatalf("revision %d after %d", l.past[i].revision, l.past[i-1].revision)
		}
	}
}
