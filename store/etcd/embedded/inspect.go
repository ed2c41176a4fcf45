package embedded

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

// inspect reads the database file of a data folder before etcd does. Damaged pages make
// bbolt panic, and in etcd that happens on a goroutine where the panic cannot be
// recovered. inspect reads only what leads to values, not the values. A missing file
// means a new store.
func inspect(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// The pages come first. Listing the free pages also reads them on a goroutine of
	// its own, which then meets only readable pages.
	if err := open(path, false, walk); err != nil {
		return err
	}
	return open(path, true, func(tx *bolt.Tx) error { return hasItsLog(tx, dir) })
}

// hasItsLog refuses a database whose log is missing or belongs to another database. The
// latest changes would be lost, and etcd would start without an error, or not at all,
// or never get ready. A first start that was killed leaves a database to which no log
// was applied yet.
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
	return nil // etcd also finds what cannot be read, and reports where.
}

// appliedTo returns the last log entry that a database contains.
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

// inspectTimeout bounds the wait for another holder of the file. There should be none,
// because the folder is locked.
const inspectTimeout = time.Second

// open calls f with a read transaction on the file. It converts panics into errors.
func open(path string, freePages bool, f func(*bolt.Tx) error) (err error) {
	// Reading a truncated file faults where it is mapped beyond its end.
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

// walk visits every page except those that only hold parts of large values.
func walk(tx *bolt.Tx) error {
	return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error {
		return bucket.ForEach(func(_, _ []byte) error { return nil })
	})
}
