package embedded

import (
	"hash/maphash"
	"math"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/encoding/protowire"
)

// ledger measures the content of etcd's database: how much is present state, and how
// much each revision turned into history. It reads the database itself, so it also
// counts what was written before this process. It is not safe for concurrent use.
type ledger struct {
	sizes   map[uint64]int64 // of the newest value of each key, by hash of the key
	live    int64            // sum of sizes
	past    []replaced       // ascending; a compaction can still drop it
	history int64            // sum of bytes in past
	newest  mvcc.Revision    // the database was read up to here
}

// replaced is the length of the values that one revision turned into history, in bytes. A compaction up to that
// revision frees it.
type replaced struct {
	revision int64
	bytes    int64
	seen     time.Time // when the ledger read it
}

func newLedger() *ledger { return &ledger{sizes: make(map[uint64]int64)} }

// keySeed is the seed for hashes of keys. If two keys had the same hash, the ledger
// would be off by one value.
var keySeed = maphash.MakeSeed()

// readAtOnce bounds the entries read from the database in one step, and so how long a
// step blocks others.
const readAtOnce = 1000

// read adds what was written since the last time.
func (l *ledger) read(db backend.Backend, now time.Time) {
	for l.readSome(db, now) == readAtOnce {
		continue
	}
}

// readSome reads through the write transaction, as etcd's compactions do. Only that one
// has every entry once and in order. The read transactions put uncommitted entries
// after the committed ones, or return them twice, and apply a limit in the middle.
func (l *ledger) readSome(db backend.Backend, now time.Time) int {
	tx := db.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	from := mvcc.RevToBytes(mvcc.Revision{Main: l.newest.Main, Sub: l.newest.Sub + 1}, mvcc.NewRevBytes())
	to := mvcc.RevToBytes(mvcc.Revision{Main: math.MaxInt64}, mvcc.NewRevBytes())
	keys, values := tx.UnsafeRange(schema.Key, from, to, readAtOnce)
	for i, key := range keys {
		l.newest = mvcc.BytesToRev(key)
		l.add(l.newest.Main, keyOf(values[i]), int64(len(key)+len(values[i])), mvcc.IsTombstone(key), now)
	}
	return len(keys)
}

// keyOf returns the key of an encoded mvccpb.KeyValue. The key is the first field, so
// the value behind it, which may be long, is not read.
func keyOf(encoded []byte) []byte {
	number, kind, n := protowire.ConsumeTag(encoded)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return nil
	}
	key, n := protowire.ConsumeBytes(encoded[n:])
	if n < 0 {
		return nil
	}
	return key
}

// add adds one change of one key.
func (l *ledger) add(revision int64, key []byte, size int64, tombstone bool, now time.Time) {
	hash := maphash.Bytes(keySeed, key)
	before := l.sizes[hash]
	l.live -= before
	gone := before
	if tombstone {
		delete(l.sizes, hash)
		gone += size
	} else {
		l.sizes[hash] = size
		l.live += size
	}
	l.history += gone
	if n := len(l.past); n > 0 && l.past[n-1].revision == revision {
		l.past[n-1].bytes += gone
		return
	}
	l.past = append(l.past, replaced{revision, gone, now})
}

// forget drops what a compaction up to a revision freed.
func (l *ledger) forget(revision int64) {
	n := 0
	for n < len(l.past) && l.past[n].revision <= revision {
		l.history -= l.past[n].bytes
		n++
	}
	l.past = append([]replaced(nil), l.past[n:]...)
}
