package embedded

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

// Snapshot is the whole content of an embedded etcd at one moment, in the format of etcd's
// own snapshots: the database followed by its SHA-256. While a snapshot is open, the
// database file cannot be defragmented (ErrSnapshotOpen).
type Snapshot struct {
	db   backend.Snapshot
	gone func() // signals that the snapshot no longer reads the file
}

// Snapshot returns a snapshot of everything that was acknowledged before the call.
// While the database file is being rewritten it waits, until ctx ends. The caller must
// close it.
func (e *Etcd) Snapshot(ctx context.Context) (*Snapshot, error) {
	file := e.keeper.file
	if err := file.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("the database file is being written anew: %w", err)
	}
	return &Snapshot{e.etcd.Server.Backend().Snapshot(), sync.OnceFunc(func() { file.Release(1) })}, nil
}

// Size returns how many bytes WriteTo writes.
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

// Close releases the pages of the database.
func (s *Snapshot) Close() error {
	defer s.gone()
	return s.db.Close()
}

// SnapshotStatus describes the content of a snapshot.
type SnapshotStatus struct {
	// Revision is etcd's revision, which is at least that of the newest object.
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"` // of present state, history of objects included
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
}

// ReadSnapshot verifies the checksum of a snapshot and reads all of its pages.
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

// readThrough reads every page. It recovers bbolt's panics over damaged pages.
func readThrough(name string) (found snapshot.Status, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its pages cannot be read: %v", p)
		}
	}()
	return snapshot.NewV3(zap.NewNop()).Status(name)
}

// errNoSum is also the error of a plain copy of a database file.
var errNoSum = errors.New("what it holds does not fit its checksum: it is damaged, cut off, or no snapshot")

// checkSum returns the size and the checksum of a snapshot if the checksum is right.
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
