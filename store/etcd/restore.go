package etcd

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
	"github.com/pilot-api/pilot-api/store"
)

// revisionLeap is how far a restore advances the store's clock. The lost store made
// fewer revisions than that after the snapshot, so no revision that a client has seen
// is assigned again.
const revisionLeap = 1_000_000_000

// unfinished is the name prefix of a folder in which a restore works.
const unfinished = ".restoring-"

// RestoreOptions say what is restored and where.
type RestoreOptions struct {
	File   string // the snapshot
	Dir    string // the data folder: empty, or created if missing
	Prefix string // of the objects
	Log    *slog.Logger
}

// Restored is the result of a restore.
type Restored struct {
	Objects int
	// Unreadable are values of the snapshot that are no objects. They are restored
	// unchanged.
	Unreadable []store.Unreadable
	// Then is the revision of the snapshot's store, Now the revision after the restore.
	Then, Now int64
	Settings  []byte // as given to KeepSettings, nil for none
}

// Restore creates a data folder from a snapshot. Objects and their history are
// unchanged. The clock leaps forward and earlier revisions are compacted, so watches
// and lists that resume from the time of the lost store get store.ErrExpired. Restore
// starts an etcd on the restored data first and then moves the data into the folder in
// one step. On failure the folder is unchanged.
func Restore(ctx context.Context, opts RestoreOptions) (Restored, error) {
	if _, err := ReadSnapshot(opts.File); err != nil {
		return Restored{}, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return Restored{}, err
	}
	lock, err := lockFolder(opts.Dir)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	if err := emptyBut(opts.Dir); err != nil {
		return Restored{}, err
	}
	work, err := os.MkdirTemp(opts.Dir, unfinished)
	if err != nil {
		return Restored{}, err
	}
	defer os.RemoveAll(work)
	if err := unpack(opts, work); err != nil {
		return Restored{}, fmt.Errorf("restore %s: %w", opts.File, err)
	}
	restored, err := opts.setForward(ctx, work)
	if err != nil {
		return Restored{}, fmt.Errorf("restore %s: %w", opts.File, err)
	}
	if err := os.Rename(filepath.Join(work, "member"), filepath.Join(opts.Dir, "member")); err != nil {
		return Restored{}, err
	}
	return restored, wholefile.SyncFolder(opts.Dir)
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
func unpack(opts RestoreOptions, dir string) error {
	defaults := embed.NewConfig()
	return snapshot.NewV3(zapLogger(opts.Log)).Restore(snapshot.RestoreConfig{
		SnapshotPath:  opts.File,
		OutputDataDir: dir,
		Name:          defaults.Name,
		PeerURLs:      []string{embed.DefaultInitialAdvertisePeerURLs}, InitialCluster: defaults.InitialCluster,
		InitialClusterToken: defaults.InitialClusterToken,
		RevisionBump:        revisionLeap, MarkCompacted: true,
	})
}

// setForward starts an etcd on the unpacked data, reads all objects, and advances the
// clock of the store to that of etcd.
func (opts RestoreOptions) setForward(ctx context.Context, dir string) (r Restored, err error) {
	e, err := StartEmbedded(ctx, EmbeddedOptions{Dir: dir, Log: opts.Log})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.holds(ctx, opts.Prefix); err != nil {
		return r, err
	}
	s := e.Store(opts.Prefix, opts.Log)
	if r.Then, err = s.Revision(ctx); err != nil {
		return r, err
	}
	if _, err := e.client.Do(ctx, s.keys.tick()); err != nil {
		return r, err
	}
	list, err := s.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil {
		return r, err
	}
	r.Now, r.Objects, r.Unreadable = list.Revision, len(list.Items), list.Unreadable
	kept, err := e.client.Get(ctx, s.keys.settings)
	if err == nil && len(kept.Kvs) > 0 {
		r.Settings = kept.Kvs[0].Value
	}
	return r, err
}
