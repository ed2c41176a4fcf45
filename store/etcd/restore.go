package etcd

import (
	"context"
	"log/slog"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// RestoreOptions state what to restore, and where.
type RestoreOptions struct {
	File   string // the snapshot
	Dir    string // the data folder: empty, or created if missing
	Prefix string // of the objects
	Log    *slog.Logger
}

// Restored is the result of a restore.
type Restored struct {
	Objects int
	// Unreadable are values of the snapshot that cannot be decoded as objects. They are
	// restored unchanged.
	Unreadable []store.Unreadable
	// Then is the revision of the store in the snapshot. Now is the revision after the
	// restore.
	Then, Now int64
	Settings  []byte // as given to KeepSettings, nil for none
}

// Restore creates the data folder of an embedded etcd from a snapshot. Objects and their
// history are unchanged. The clock jumps forward and earlier revisions are compacted. So
// watches and lists that resume from a revision of the lost store get store.ErrExpired. If
// anything fails, the folder is unchanged.
func Restore(ctx context.Context, opts RestoreOptions) (r Restored, err error) {
	err = embedded.Restore(ctx, opts.File, embedded.Options{Dir: opts.Dir, Log: opts.Log}, func(e *embedded.Etcd) error {
		r, err = opts.setForward(ctx, e)
		return err
	})
	if err != nil {
		return Restored{}, err
	}
	return r, nil
}

// setForward reads all objects, and advances the clock of the store to that of etcd.
func (opts RestoreOptions) setForward(ctx context.Context, e *embedded.Etcd) (r Restored, err error) {
	if err := holdsOnly(ctx, e.Client(), opts.Prefix); err != nil {
		return r, err
	}
	s := NewEmbedded(e, opts.Prefix, opts.Log)
	if r.Then, err = s.Revision(ctx); err != nil {
		return r, err
	}
	if _, err := s.client.Do(ctx, s.keys.tick()); err != nil {
		return r, err
	}
	list, err := s.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil {
		return r, err
	}
	r.Now, r.Objects, r.Unreadable = list.Revision, len(list.Items), list.Unreadable
	kept, err := s.client.Get(ctx, s.keys.settings)
	if err == nil && len(kept.Kvs) > 0 {
		r.Settings = kept.Kvs[0].Value
	}
	return r, err
}
