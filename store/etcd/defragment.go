package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrSnapshotOpen is why a database file is not written anew now: somebody reads it.
var ErrSnapshotOpen = errors.New("a snapshot is being taken: try again when it is done")

// everySnapshot is what a rewrite takes of keeper.file, where a snapshot takes 1.
const everySnapshot = math.MaxInt64

// Defragment writes the database file anew, without its holes, and tells how long it
// was and is. Reads and writes of the store wait for it, about a second a GiB. It
// fails where the disk has no room for a second file, and with ErrSnapshotOpen while
// there is a Snapshot.
func (e *Embedded) Defragment(ctx context.Context) (before, after int64, err error) {
	k := e.keeper
	k.turning.Lock()
	defer k.turning.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	before = k.server.Backend().Size()
	err = errors.Join(k.rewrite(time.Now()), k.disarm(ctx), k.measure())
	return before, k.server.Backend().Size(), err
}

// defragment writes the database file anew if that pays, or if writes are refused
// for want of room that only this can make.
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
	return nil // Another turn will find it closed.
}

// rewrite takes the holes out of the database file. It waits for no snapshot: etcd
// holds up all reads and writes, and their deadlines too, until whoever reads the
// file has gone.
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
