package etcd

import (
	"hash/maphash"
	"math"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/encoding/protowire"
)

// ledger knows what etcd's database holds: how much of it is present state, and
// which revision made how much of it history. It reads the database itself, and
// so it knows what was written before this process too. It is not safe for
// concurrent use.
type ledger struct {
	sizes   map[uint64]int64 // of the newest value of each key, by its hash
	live    int64            // sum of sizes
	past    []replaced       // ascending; what a compaction can still forget
	history int64            // sum of bytes in past
	newest  mvcc.Revision    // up to here the database was read
}

// replaced is what one revision made history: bytes that a compaction up to it
// gives free.
type replaced struct {
	revision int64
	bytes    int64
	seen     time.Time // when the ledger met it
}

func newLedger() *ledger { return &ledger{sizes: make(map[uint64]int64)} }

// keySeed is for hashes of keys. Two keys with one would put the ledger out by a
// value.
var keySeed = maphash.MakeSeed()

// readAtOnce bounds how many entries are read from the database in one step, and
// so how long a step holds up others.
const readAtOnce = 1000

// read takes in what was written since the last time.
func (l *ledger) read(db backend.Backend, now time.Time) {
	for l.readSome(db, now) == readAtOnce {
		continue
	}
}

// readSome reads through the transaction that writes, as etcd's compactions do. It
// alone has everything once and in order: the others put what is not committed
// behind what is, or once more, and let a limit cut out of the middle.
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

// keyOf is the key in an encoded mvccpb.KeyValue, its first field: the value
// behind it may be long and is not looked at.
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

// add takes in one change of one key.
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

// forget drops what a compaction up to a revision gave free.
func (l *ledger) forget(revision int64) {
	n := 0
	for n < len(l.past) && l.past[n].revision <= revision {
		l.history -= l.past[n].bytes
		n++
	}
	l.past = append([]replaced(nil), l.past[n:]...)
}
