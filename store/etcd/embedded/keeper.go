package embedded

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

// keeper keeps an embedded etcd within bounds. It compacts history, purges the raft
// log, defragments the database file when that is worthwhile, and disarms the alarm
// that an earlier version may have left.
type keeper struct {
	server    *etcdserver.EtcdServer
	client    *clientv3.Client
	dir       string
	log       *slog.Logger
	retention retention
	quota     *quota

	drop atomic.Pointer[func(context.Context) (bool, error)] // see Etcd.WhenCrowded; may be nil

	ledger       *ledger
	rounds       sync.Mutex          // held by a round and by Defragment
	file         *semaphore.Weighted // each snapshot acquires 1, a rewrite everything
	defragmented time.Time           // time of the last rewrite, zero for none
	purged       uint64              // applied index of the raft log at the last purge
	most         int64               // most bytes in the ledger since defragmented
	usage        atomic.Pointer[Usage]
	compactions  atomic.Int64
	defrags      atomic.Int64
}

// Usage is the space that an embedded etcd occupies. Sizes are in bytes.
type Usage struct {
	// InUse is the size of the database's content, including pending writes. File is
	// the size of its file, which includes holes that will be reused.
	InUse, File int64
	// OnItsWay is the size of the recently admitted writes. InUse may count them twice,
	// because etcd does not report when they have reached the database.
	OnItsWay int64
	// Quota is the limit of InUse.
	Quota int64
	// Live is the size of the present state. History is the size of the data that
	// compactions can free.
	Live, History int64
	// OldestRevision is the oldest revision that can be read or watched from.
	OldestRevision int64
	// DiskFree is the free space on the disk of the data folder.
	DiskFree int64
	// Compactions and Defragmentations are counted since the start.
	Compactions, Defragmentations int64
}

// keepInterval is the time between rounds of a keeper. It is longer than the 100 ms that
// pass at most between a write and its commit to the database file.
const keepInterval = 250 * time.Millisecond

// begin reads what an earlier process left and brings it within bounds.
func (k *keeper) begin(ctx context.Context) error {
	k.ledger.read(k.server.Backend(), time.Now())
	k.ledger.forget(k.server.KV().FirstRev()) // etcd has compacted this already.
	k.most = k.server.Backend().SizeInUse()   // Earlier deletions are unknown.
	if err := k.disarm(ctx); err != nil {
		return err
	}
	return k.round(ctx)
}

// run makes rounds until ctx ends.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	said := ""
	for {
		began := time.Now()
		err := k.round(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			k.log.Warn("keeping the embedded etcd in its bounds", "error", err)
		}
		// A compaction reads everything that is stored. It may take at most a third of
		// the time.
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

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// round does all work that is due.
func (k *keeper) round(ctx context.Context) error {
	k.rounds.Lock()
	defer k.rounds.Unlock()
	now := time.Now()
	k.ledger.read(k.server.Backend(), now)
	wanted := k.quota.refused()
	until := k.retention.horizon(k.ledger, k.quota.used()+wanted, now)
	var errs []error
	switch {
	case until > 0:
		errs = append(errs, k.compact(ctx, until))
	case wanted > 0:
		k.settlePages() // Readers may have held pages that an earlier compaction freed.
	}
	errs = append(errs, k.makeRoom(ctx, wanted > 0))
	k.quota.settle(k.ledger.history, now)
	errs = append(errs, k.purge(), k.defragment(now, wanted > 0), k.measure())
	return errors.Join(errs...)
}

// purge deletes files of the raft log if the log has grown since the last time.
func (k *keeper) purge() error {
	grown := k.server.AppliedIndex()
	if grown == k.purged {
		return nil
	}
	k.purged = grown
	return purgeLog(k.dir)
}

// spacious is the percentage of the quota up to which history records may fill the
// store. It is below the percentage at which readiness warns.
const spacious = 75

// makeRoom drops history records when the present state needs their room, at the latest
// when a write is refused. Their space is then history of etcd, and a compaction frees
// it.
func (k *keeper) makeRoom(ctx context.Context, refusing bool) error {
	drop := k.drop.Load()
	if drop == nil || !refusing && k.ledger.live <= k.retention.quota/100*spacious {
		return nil
	}
	if went, err := (*drop)(ctx); err != nil || !went {
		return err
	}
	k.ledger.read(k.server.Backend(), time.Now())
	return nil
}

// compact drops history up to a revision and waits until its space is free. An earlier
// try whose answer was late may have done it already.
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

// settlePages makes bbolt count the pages that a compaction freed as free. That takes
// two commits after the last reader of the pages has gone, and a store that refuses
// writes would make none. The writes here change nothing.
func (k *keeper) settlePages() {
	for range 2 {
		k.awaitReaders()
		tx := k.server.Backend().BatchTx()
		tx.LockOutsideApply()
		if revision, found := mvcc.UnsafeReadFinishedCompact(tx); found {
			mvcc.UnsafeSetFinishedCompact(tx, revision)
		}
		tx.Unlock()
		k.server.Backend().ForceCommit()
	}
}

// readerWait bounds awaitReaders.
const readerWait = 100 * time.Millisecond

// awaitReaders waits until the only reader of the database is the transaction that etcd
// keeps open for later reads, at most for readerWait. etcd closes a reader's transaction
// in a goroutine of its own, which may run after the reader's end.
func (k *keeper) awaitReaders() {
	for began := time.Now(); k.server.Backend().OpenReadTxN() > 1 && time.Since(began) < readerWait; {
		time.Sleep(time.Millisecond)
	}
}

// disarm clears the alarm with which etcd's own quota refuses all puts. That quota is
// now off, and our quota does not count holes in the file.
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

// diskFree returns what an unprivileged process can still write to a folder's disk, in
// bytes.
func diskFree(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(filepath.Clean(dir), &stat); err != nil {
		return 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}
