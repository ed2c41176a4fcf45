package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"golang.org/x/sync/semaphore"
)

// keeper keeps an embedded etcd in its bounds: it compacts history, purges the
// raft log, defragments the database file when that pays, and disarms the alarm
// that a former version may have left.
type keeper struct {
	server    *etcdserver.EtcdServer
	client    *clientv3.Client
	dir       string
	log       *slog.Logger
	retention retention
	quota     *quota

	store atomic.Pointer[Store] // whose records of former states give way

	ledger       *ledger
	turning      sync.Mutex          // held by a turn, and by who has the file written anew
	file         *semaphore.Weighted // held in part by each snapshot, whole by a rewrite
	defragmented time.Time           // the last time, zero for never
	purged       uint64              // the entry of the raft log up to which it was looked through
	most         int64               // that the ledger knew of since then, in bytes
	usage        atomic.Pointer[Usage]
	compactions  atomic.Int64
	defrags      atomic.Int64
}

// Usage is what an embedded etcd occupies. Sizes are bytes.
type Usage struct {
	// InUse is what the database holds, with what is on its way; File is the
	// size of its file, with holes that will be used again.
	InUse, File int64
	// OnItsWay is what was let in within the last moments. It may be counted
	// twice in InUse, since nobody tells when it has reached the database.
	OnItsWay int64
	// Quota is what InUse may grow to.
	Quota int64
	// Live is the present state, History what compactions can give free.
	Live, History int64
	// OldestRevision is the oldest one that can be read or watched from.
	OldestRevision int64
	// DiskFree is what is left on the disk of the data folder.
	DiskFree int64
	// Compactions and Defragmentations are counted since the start.
	Compactions, Defragmentations int64
}

// keepInterval is how often a keeper looks around. It is longer than the 100 ms
// that pass at most between a write and its commit to the database file.
const keepInterval = 250 * time.Millisecond

// begin takes in what a former process left, and puts it in its bounds.
func (k *keeper) begin(ctx context.Context) error {
	k.ledger.read(k.server.Backend(), time.Now())
	k.ledger.forget(k.server.KV().FirstRev()) // It is forgotten already.
	k.most = k.server.Backend().SizeInUse()   // Who knows what was deleted before.
	if err := k.disarm(ctx); err != nil {
		return err
	}
	return k.turn(ctx)
}

// run ends with ctx.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	var said trouble
	for {
		began := time.Now()
		err := k.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if said.isNew(err) {
			k.log.Warn("keeping the embedded etcd in its bounds", "error", err)
		}
		// A compaction reads all that is stored: no more than a third of the
		// time goes into it.
		if rest := 2 * time.Since(began); rest > keepInterval && !sleep(ctx, rest-keepInterval) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// trouble is what the last turn failed with, "" for nothing. What fails every
// time is said once.
type trouble string

func (t *trouble) isNew(err error) bool {
	last := *t
	if err == nil {
		*t = ""
		return false
	}
	*t = trouble(err.Error())
	return *t != last
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// turn does what is due.
func (k *keeper) turn(ctx context.Context) error {
	k.turning.Lock()
	defer k.turning.Unlock()
	now := time.Now()
	k.ledger.read(k.server.Backend(), now)
	wanted := k.quota.refused()
	until := k.retention.horizon(k.ledger, k.quota.used()+wanted, now)
	var errs []error
	switch {
	case until > 0:
		errs = append(errs, k.compact(ctx, until))
	case wanted > 0:
		k.settlePages() // Readers may have held on to what was given free before.
	}
	errs = append(errs, k.makeRoom(ctx, wanted > 0))
	k.quota.settle(k.ledger.history, now)
	errs = append(errs, k.purge(), k.defragment(now, wanted > 0), k.measure())
	return errors.Join(errs...)
}

// purge lets go of files of the raft log, if it has grown since the last time.
func (k *keeper) purge() error {
	grown := k.server.AppliedIndex()
	if grown == k.purged {
		return nil
	}
	k.purged = grown
	return purgeLog(k.dir)
}

// spacious is the part of the quota, in percent, up to which records of former
// states may fill the store. It is below the one from which readiness warns.
const spacious = 75

// makeRoom lets records of former states go where the present state needs their
// room, at the latest when a write is refused. What they occupied is history of
// etcd then, and goes as such.
func (k *keeper) makeRoom(ctx context.Context, refusing bool) error {
	s := k.store.Load()
	if s == nil || !refusing && k.ledger.live <= k.retention.quota/100*spacious {
		return nil
	}
	if went, err := s.giveWay(ctx); err != nil || !went {
		return err
	}
	k.ledger.read(k.server.Backend(), time.Now())
	return nil
}

// compact forgets history up to a revision and waits until its space is free. It
// may be done already: by a try whose answer did not come in time.
func (k *keeper) compact(ctx context.Context, revision int64) error {
	began := time.Now()
	_, err := k.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact up to revision %d: %w", revision, err)
	}
	before := k.ledger.history
	k.ledger.forget(revision)
	k.settlePages()
	k.compactions.Add(1)
	k.log.Debug("history compacted", "revision", revision, "bytes", before-k.ledger.history, "took", time.Since(began))
	return nil
}

// settlePages makes the pages that a compaction gave free count as such: bbolt
// takes two commits for that, after the last reader of them has gone, and in a
// store that refuses writes there would be none. What is written is there
// already.
func (k *keeper) settlePages() {
	for range 2 {
		tx := k.server.Backend().BatchTx()
		tx.LockOutsideApply()
		if revision, found := mvcc.UnsafeReadFinishedCompact(tx); found {
			mvcc.UnsafeSetFinishedCompact(tx, revision)
		}
		tx.Unlock()
		k.server.Backend().ForceCommit()
	}
}

// disarm takes back the alarm with which etcd's own quota refuses all puts. That
// quota is off now, and ours does not count holes in the file.
func (k *keeper) disarm(ctx context.Context) error {
	alarms, err := k.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list alarms: %w", err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		k.log.Info("a former version has left the data full and closed to writes: opening it again")
		if _, err := k.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return fmt.Errorf("disarm: %w", err)
		}
	}
	return nil
}

func (k *keeper) measure() error {
	disk, err := diskFree(k.dir)
	if err != nil {
		return err
	}
	db := k.server.Backend()
	inUse, onItsWay := k.quota.count()
	k.usage.Store(&Usage{
		InUse: inUse, OnItsWay: onItsWay, File: db.Size(), Quota: k.quota.limit,
		Live: k.ledger.live, History: k.ledger.history,
		OldestRevision: max(1, k.server.KV().FirstRev()), DiskFree: disk,
		Compactions: k.compactions.Load(), Defragmentations: k.defrags.Load(),
	})
	return nil
}

// diskFree is what an unprivileged process can still write to a folder's disk.
func diskFree(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(filepath.Clean(dir), &stat); err != nil {
		return 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}
