package etcd_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestEmbeddedKeepsItsData also checks that Close releases the folder.
func TestEmbeddedKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	first, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	made, err := etcd.NewEmbedded(first, etcd.DefaultPrefix, quiet).Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	second := etcd.New(startEmbedded(t, dir).Client(), etcd.DefaultPrefix, quiet)
	got, err := second.Get(t.Context(), made.Key(), store.ReadOptions{})
	if err != nil || string(got.JSON()) != string(made.JSON()) {
		t.Errorf("after a restart: %v, %v", got, err)
	}
}

func TestEmbeddedFolderIsOneProcess(t *testing.T) {
	dir := t.TempDir()
	startEmbedded(t, dir)
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet})
	if err == nil {
		t.Fatal("started twice in one folder")
	}
	for _, want := range []string{dir, fmt.Sprintf("process %d", os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}

func TestEmbeddedFolderMustBeWritable(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(t.Context(), embedded.Options{Dir: file, Log: quiet}); err == nil {
		t.Error("started in a file")
	}
}

// TestClosedStore checks that calls after Close fail with ErrUnavailable and do not
// hang.
func TestClosedStore(t *testing.T) {
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for range w.Batches() {
		continue
	}
	if !errors.Is(w.Err(), store.ErrUnavailable) && !errors.Is(w.Err(), context.Canceled) {
		t.Errorf("watch ended with %v", w.Err())
	}
	if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1)); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("create: %v", err)
	}
	if _, err := s.Revision(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("revision: %v", err)
	}
}

// TestEmbeddedFolderIsDamaged checks that a damaged folder gives an error that names
// it, although etcd and its database panic in different places and on goroutines of
// their own.
func TestEmbeddedFolderIsDamaged(t *testing.T) {
	outside.Slow(t)
	garbage := bytes.Repeat([]byte("garbage "), 1<<13)
	page := os.Getpagesize()
	for _, c := range []struct {
		name, files string
		damage      func(*os.File) error
	}{
		{"database", "member/snap/db", func(f *os.File) error { _, err := f.WriteAt(garbage, 0); return err }},
		{"pages of the database", "member/snap/db", func(f *os.File) error { return overwritePages(f, garbage[:page]) }},
		{"end of the database", "member/snap/db", func(f *os.File) error { return f.Truncate(int64(3 * page)) }},
		{"log", "member/wal/*.wal", func(f *os.File) error { _, err := f.WriteAt(garbage, 0); return err }},
		{"first records of the log", "member/wal/*.wal", func(f *os.File) error { _, err := f.WriteAt(garbage[:192], 64); return err }},
		{"a bit of the log", "member/wal/*.wal", func(f *os.File) error { _, err := f.WriteAt([]byte{0xff}, 1000); return err }},
		{"no log", "member/wal", func(f *os.File) error { return os.RemoveAll(f.Name()) }},
		{"no file of the log", "member/wal/*.wal", func(f *os.File) error { return os.Remove(f.Name()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Not TempDir: the rest of a failed etcd may still write.
			dir, err := os.MkdirTemp("", "damaged")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			fill(t, dir)
			files, err := filepath.Glob(filepath.Join(dir, c.files))
			if err != nil || len(files) == 0 {
				t.Fatalf("nothing to damage: %v", err)
			}
			for _, name := range files {
				f, err := openToDamage(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := cmp.Or(c.damage(f), f.Close()); err != nil {
					t.Fatal(err)
				}
			}
			_, err = embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet})
			if !errors.Is(err, embedded.ErrFailed) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "restore a snapshot") {
				t.Errorf("got %v, want an error that names the folder and the way out", err)
			}
		})
	}
}

// openToDamage opens a file for writing, or a folder.
func openToDamage(name string) (*os.File, error) {
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return os.Open(name)
	}
	return os.OpenFile(name, os.O_RDWR, 0)
}

// TestFirstStartIsKilled checks that a start that ended before there was a log, and so
// before anything was stored, leaves a folder that can be started again.
func TestFirstStartIsKilled(t *testing.T) {
	killed := t.TempDir()
	folder := filepath.Join(killed, "member", "snap")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(folder, "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.NewEmbedded(startEmbedded(t, killed), etcd.DefaultPrefix, quiet).Create(t.Context(), storetest.Rule(t, "default", "a", 1)); err != nil {
		t.Error(err)
	}
}

// overwritePages damages every page after the two that describe the file.
func overwritePages(f *os.File, garbage []byte) error {
	info, err := f.Stat()
	page := int64(len(garbage))
	for at := 2 * page; err == nil && at+page <= info.Size(); at += page {
		_, err = f.WriteAt(garbage, at)
	}
	return err
}

// fill makes a data folder with a few objects.
func fill(t *testing.T, dir string) {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
	for i := range 50 {
		if _, err := s.Create(t.Context(), storetest.Rule(t, "default", fmt.Sprintf("rule-%d", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
