package embedded

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// Round runs a round of the keeper.
func Round(ctx context.Context, e *Etcd) error { return e.keeper.round(ctx) }

// Backend returns the database.
func Backend(e *Etcd) backend.Backend { return e.etcd.Server.Backend() }

// Compacting stops the keeper. It returns a function that compacts through kv, and
// returns how many bytes of history are left.
func Compacting(e *Etcd, kv clientv3.KV) func(ctx context.Context, revision int64) (history int64, err error) {
	e.stop()
	k := e.keeper
	k.client = &clientv3.Client{KV: kv}
	return func(ctx context.Context, revision int64) (int64, error) {
		k.ledger.read(Backend(e), time.Now())
		err := k.compact(ctx, revision)
		return k.ledger.history, err
	}
}

// Defragmented returns how many times the file was rewritten.
func Defragmented(e *Etcd) int64 { return e.keeper.defrags.Load() }

// HoldFile keeps the file as a rewrite does, until release is called.
func HoldFile(e *Etcd) (release func(), ok bool) {
	file := e.keeper.file
	return func() { file.Release(everySnapshot) }, file.TryAcquire(everySnapshot)
}

// DefragmentForRoom runs a round of a keeper that has a reason to defragment: a refused
// write that needs the room.
func DefragmentForRoom(e *Etcd) error {
	k := e.keeper
	k.rounds.Lock()
	defer k.rounds.Unlock()
	defer func(known *ledger) { k.ledger = known }(k.ledger)
	k.ledger = newLedger()
	k.ledger.live = -k.quota.limit // Makes nearly all of the file count as holes.
	return k.defragment(time.Now(), true)
}
