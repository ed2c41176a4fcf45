package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/store/etcd/etcdlog"
)

// revisionLeap is how far a restore advances etcd's revision. The lost etcd made fewer
// revisions than that after the snapshot, so no revision that a client has seen is
// assigned again.
const revisionLeap = 1_000_000_000

// unfinished is the name prefix of a folder in which a restore works.
const unfinished = ".restoring-"

// Restore creates a data folder from a snapshot file. The folder must be empty, and is
// created if missing. The revision jumps forward, and earlier revisions are compacted.
// Restore starts an etcd on the restored data, calls check, and then moves the data into
// the folder in one step. If anything fails, the folder is unchanged.
func Restore(ctx context.Context, file string, to Options, check func(*Etcd) error) error {
	if _, err := ReadSnapshot(file); err != nil {
		return err
	}
	if err := os.MkdirAll(to.Dir, 0o700); err != nil {
		return err
	}
	lock, err := lockFolder(to.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := emptyBut(to.Dir); err != nil {
		return err
	}
	work, err := os.MkdirTemp(to.Dir, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := unpack(file, work, to.Log); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := to.checkIn(ctx, work, check); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := os.Rename(filepath.Join(work, "member"), filepath.Join(to.Dir, "member")); err != nil {
		return err
	}
	return wholefile.SyncFolder(to.Dir)
}

// checkIn starts an etcd in the folder where a restore works.
func (o Options) checkIn(ctx context.Context, work string, check func(*Etcd) error) (err error) {
	o.Dir = work
	e, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return check(e)
}

// emptyBut refuses a folder that is not empty. It removes the leftovers of a killed
// restore, and ignores the lock file and lost+found.
func emptyBut(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == lockName || name == "lost+found":
		case strings.HasPrefix(name, unfinished):
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the folder %s is not empty, it has %s in it: restore into a new one", dir, name)
		}
	}
	return nil
}

// refuseUnfinished keeps an etcd from starting empty in a folder where a restore was
// killed.
func refuseUnfinished(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	if err != nil || len(left) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err == nil {
		return nil
	}
	return fmt.Errorf("a restore into %s was not finished: run it again, or remove %s", dir, left[0])
}

// unpack creates the files of an embedded etcd from a snapshot.
func unpack(file, dir string, log *slog.Logger) error {
	defaults := embed.NewConfig()
	return snapshot.NewV3(etcdlog.New(log)).Restore(snapshot.RestoreConfig{
		SnapshotPath:  file,
		OutputDataDir: dir,
		Name:          defaults.Name,
		PeerURLs:      []string{embed.DefaultInitialAdvertisePeerURLs}, InitialCluster: defaults.InitialCluster,
		InitialClusterToken: defaults.InitialClusterToken,
		RevisionBump:        revisionLeap, MarkCompacted: true,
	})
}
