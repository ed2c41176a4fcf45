package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// inspect reads through the database file of a data folder before etcd does.
// What is wrong with its pages makes bbolt panic, and in etcd it does so on a
// goroutine where nobody can catch it. Values are not read, only what leads to
// them. No file is a new store.
func inspect(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// The pages first, so that listing the free ones, which also reads them on
	// a goroutine of its own, meets only what can be read.
	if err := open(path, false, walk); err != nil {
		return err
	}
	return open(path, true, func(tx *bolt.Tx) error { return hasItsLog(tx, dir) })
}

// hasItsLog refuses a database whose log is gone or another one's: with that go the
// latest changes, and etcd would start without a word, or not at all, or never be ready.
// A first start that was killed has left a database to which no log was applied yet.
func hasItsLog(tx *bolt.Tx, dir string) error {
	applied := appliedTo(tx)
	if applied == 0 {
		return nil
	}
	logs := filepath.Join(dir, "member", "wal")
	names, err := filepath.Glob(filepath.Join(logs, "*.wal"))
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return damaged(fmt.Sprintf("%s has no log any more, which has the latest changes", logs))
	}
	end, err := endOfLog(logs)
	if err == nil && end < applied {
		return damaged(fmt.Sprintf("the log in %s ends at its entry %d, and the database has entry %d: they do not belong together", logs, end, applied))
	}
	return nil // What cannot be read, etcd finds as well, and says where.
}

// appliedTo is the last entry of the log that a database has.
func appliedTo(tx *bolt.Tx) uint64 {
	meta := tx.Bucket(schema.Meta.Name())
	if meta == nil {
		return 0
	}
	index := meta.Get(schema.MetaConsistentIndexKeyName)
	if len(index) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(index)
}

// inspectTimeout is how long another holder of the file is waited for. There
// should be none, for the folder is locked.
const inspectTimeout = time.Second

// open reads the file with f; panics are errors.
func open(path string, freePages bool, f func(*bolt.Tx) error) (err error) {
	// A file that is too short faults where it is mapped beyond its end.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged(fmt.Sprintf("%s: %v", path, p))
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: freePages, Timeout: inspectTimeout})
	if err != nil {
		return damaged(fmt.Sprintf("%s: %v", path, err))
	}
	if err := db.View(f); err != nil {
		return err
	}
	return db.Close()
}

// walk visits every page but those that only hold parts of large values.
func walk(tx *bolt.Tx) error {
	return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error {
		return bucket.ForEach(func(_, _ []byte) error { return nil })
	})
}
