package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// Limits of the raft log. A cluster of one has no member that must catch up. In memory etcd
// cuts the log every hundred entries, down to raftKept; on disk every raftSnapshot entries.
// A start reads all entries since the last cut into memory. The cost for small writes is
// too small to measure (docs/decisions/008-embedded-store.md).
const (
	raftSnapshot = 100
	raftKept     = 10
	// logFiles is the number of 64 MiB files that may stay on disk even if unneeded.
	logFiles = 2
)

func boundRaftLog(cfg *embed.Config) {
	cfg.SnapshotCount = raftSnapshot
	cfg.SnapshotCatchUpEntries = raftKept
	// etcd looks for files to delete only every 30 seconds, and some gigabytes can be
	// written in that time. See purgeLog.
	cfg.MaxWalFiles = 0
}

// endOfLog returns the index of the last entry of a raft log, 0 if it has none.
func endOfLog(dir string) (uint64, error) {
	start := &walpb.Snapshot{}
	cuts, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, err
	}
	if len(cuts) > 0 {
		start = cuts[len(cuts)-1]
	}
	log, err := wal.OpenForRead(zap.NewNop(), dir, start)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	_, _, entries, err := log.ReadAll()
	if err != nil && !errors.Is(err, wal.ErrSnapshotNotFound) {
		return 0, err
	}
	return start.GetIndex() + uint64(len(entries)), nil
}

// purgeLog deletes the files of the raft log that are no longer needed, the oldest
// first. etcd holds a lock on the files that are needed.
func purgeLog(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return err
	}
	for i := 0; i < len(names)-logFiles; i++ {
		lock, err := fileutil.TryLockFile(names[i], os.O_WRONLY, fileutil.PrivateFileMode)
		if errors.Is(err, fileutil.ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(os.Remove(names[i]), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}
