package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.uber.org/zap"
)

// Snapshot is all that an embedded etcd holds at one moment, in the form of
// etcd's own snapshots: its database, and the SHA-256 of that behind. While it is
// open the database file is not defragmented (ErrSnapshotOpen).
type Snapshot struct {
	db   backend.Snapshot
	gone func() // tells that nobody reads the file for it any more
}

// Snapshot has everything in it that was acknowledged before the call. While the
// database file is written anew it waits, until ctx ends. It must be closed.
func (e *Embedded) Snapshot(ctx context.Context) (*Snapshot, error) {
	file := e.keeper.file
	if err := file.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("the database file is being written anew: %w", err)
	}
	return &Snapshot{e.etcd.Server.Backend().Snapshot(), sync.OnceFunc(func() { file.Release(1) })}, nil
}

// Size is how many bytes WriteTo writes.
func (s *Snapshot) Size() int64 { return s.db.Size() + sha256.Size }

// WriteTo implements io.WriterTo.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	sum := sha256.New()
	n, err := s.db.WriteTo(io.MultiWriter(w, sum))
	if err != nil {
		return n, err
	}
	m, err := w.Write(sum.Sum(nil))
	return n + int64(m), err
}

// Close gives the pages of the database free again.
func (s *Snapshot) Close() error {
	defer s.gone()
	return s.db.Close()
}

// SnapshotStatus is what a snapshot holds.
type SnapshotStatus struct {
	// Revision is etcd's, which is not less than that of the newest object.
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"` // of present state, history of objects included
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
}

// ReadSnapshot holds a snapshot against its checksum, and reads through it.
func ReadSnapshot(name string) (SnapshotStatus, error) {
	size, sum, err := checkSum(name)
	if err != nil {
		return SnapshotStatus{}, fmt.Errorf("snapshot %s: %w", name, err)
	}
	found, err := readThrough(name)
	if err != nil {
		return SnapshotStatus{}, fmt.Errorf("snapshot %s: %w", name, err)
	}
	return SnapshotStatus{Revision: found.Revision, Keys: found.TotalKey, Bytes: size, SHA256: fmt.Sprintf("%x", sum)}, nil
}

// readThrough looks at every page; bbolt panics over some that are damaged.
func readThrough(name string) (found snapshot.Status, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its pages cannot be read: %v", p)
		}
	}()
	return snapshot.NewV3(zap.NewNop()).Status(name)
}

// errNoSum: a copy of a database file has none either.
var errNoSum = errors.New("what it holds does not fit its checksum: it is damaged, cut off, or no snapshot")

// checkSum is the size of a snapshot and its checksum, if that holds.
func checkSum(name string) (int64, []byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	content := info.Size() - sha256.Size
	if content <= 0 {
		return 0, nil, errNoSum
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, content); err != nil {
		return 0, nil, err
	}
	want, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(want, sum.Sum(nil)) {
		err = errNoSum
	}
	return info.Size(), want, err
}

// settings is the key under which a snapshot has the settings of the mesh.
func settings(prefix string) string { return newLayout(prefix).settings }

// KeepSettings puts the settings of the mesh beside the objects of a prefix, so
// that they are in the next Snapshot.
func (e *Embedded) KeepSettings(ctx context.Context, prefix string, text []byte) error {
	if len(text) == 0 {
		_, err := e.client.Delete(ctx, settings(prefix))
		return err
	}
	_, err := e.client.Put(ctx, settings(prefix), string(text))
	return err
}
