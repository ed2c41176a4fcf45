package embedded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrSnapshotOpen means that the database file cannot be rewritten while a snapshot
// reads it.
var ErrSnapshotOpen = errors.New("a snapshot is being taken: try again when it is done")

// everySnapshot is the weight of a rewrite in keeper.file. A snapshot has weight 1.
const everySnapshot = math.MaxInt64

// Defragment rewrites the database file without its holes and returns its size before
// and after. Reads and writes of the store wait meanwhile, about a second per GiB. It
// fails if the disk has no room for a second file, and with ErrSnapshotOpen while a
// Snapshot is open.
func (e *Etcd) Defragment(ctx context.Context) (before, after int64, err error) {
	k := e.keeper
	k.rounds.Lock()
	defer k.rounds.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	before = k.server.Backend().Size()
	err = errors.Join(k.rewrite(time.Now()), k.disarm(ctx), k.measure())
	return before, k.server.Backend().Size(), err
}

// defragment rewrites the database file if that is worthwhile, or if writes are refused
// for lack of room that only a rewrite can free.
func (k *keeper) defragment(now time.Time, refusing bool) error {
	content := k.ledger.live + k.ledger.history
	k.most = max(k.most, content)
	size, used := k.server.Backend().Size(), k.server.Backend().SizeInUse()
	pays := shouldDefragment(size, used) && (k.defragmented.IsZero() || now.Sub(k.defragmented) >= defragmentInterval)
	if !pays && !(refusing && shouldPack(used, content, k.most, k.quota.limit)) {
		return nil
	}
	if err := k.rewrite(now); !errors.Is(err, ErrSnapshotOpen) {
		return err
	}
	return nil // A later round will find the snapshot closed.
}

// rewrite removes the holes from the database file. It does not wait for a snapshot:
// etcd would block all reads and writes, and their deadlines, until the snapshot is
// closed.
func (k *keeper) rewrite(now time.Time) error {
	if !k.file.TryAcquire(everySnapshot) {
		return ErrSnapshotOpen
	}
	defer k.file.Release(everySnapshot)
	db := k.server.Backend()
	size, used := db.Size(), db.SizeInUse()
	disk, err := diskFree(k.dir)
	switch {
	case err != nil:
		return err
	case disk <= used+used/4:
		return errors.New("the database file should be defragmented, but the disk has no room for a second one")
	}
	k.defragmented, k.most = now, k.ledger.live+k.ledger.history
	k.log.Info("defragmenting the database file: reads and writes wait", "size", inUnits(size), "in use", inUnits(used))
	if err := k.server.Defragment(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	k.defrags.Add(1)
	k.log.Info("database file defragmented", "size", inUnits(db.Size()), "took", time.Since(now).Round(time.Millisecond))
	return nil
}
