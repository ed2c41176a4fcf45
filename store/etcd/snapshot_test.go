package etcd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// busy creates, changes and deletes objects, some of them together.
func busy(t *testing.T, s *etcd.Store) {
	t.Helper()
	for i := range 12 {
		var ops []store.Op
		for j := range 4 {
			ops = append(ops, store.Op{Verb: store.OpApply, Object: storetest.Rule(t, "default", fmt.Sprintf("rule-%d", (i+j)%6), i)})
		}
		if i > 2 && i%3 == 0 {
			ops = append(ops[:1], store.Op{Verb: store.OpDelete, Key: storetest.Rule(t, "default", fmt.Sprintf("rule-%d", (i+2)%6), 1).Key()})
		}
		if _, err := s.Txn(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
}

// known returns everything that a store returns about its objects and their history.
// exact includes revisions.
func known(t *testing.T, s *etcd.Store, exact bool) (lines []string) {
	t.Helper()
	text := func(o *schema.Object) string {
		switch {
		case o == nil:
			return "none"
		case exact:
			return string(o.JSON())
		}
		return string(o.Encoded())
	}
	list, err := s.List(t.Context(), store.Scope{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		lines = append(lines, text(o))
	}
	for i := range 6 {
		key := storetest.Rule(t, "default", fmt.Sprintf("rule-%d", i), 1).Key()
		versions, err := s.History(t.Context(), key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		for _, v := range versions {
			line := fmt.Sprintf("%s: lost %t %s", key, v.Lost, text(v.Object))
			if exact {
				line += fmt.Sprint(v.Revision)
			}
			if v.Change != nil {
				line += fmt.Sprint(v.Change.Verb, v.Change.Time, v.Change.Author, v.Change.Transaction)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// save writes a snapshot and returns the name of its file.
func save(t *testing.T, e *embedded.Etcd) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	snapshot, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if n, err := snapshot.WriteTo(f); err != nil || n != snapshot.Size() {
		t.Fatalf("%d bytes of %d: %v", n, snapshot.Size(), err)
	}
	return f.Name()
}

func restore(t *testing.T, file, dir string) (etcd.Restored, error) {
	t.Helper()
	return etcd.Restore(t.Context(), etcd.RestoreOptions{File: file, Dir: dir, Prefix: etcd.DefaultPrefix, Log: quiet})
}

// TestRestore checks that objects and history are unchanged, including their revisions,
// that the clock has leapt, and that resuming from before gives ErrExpired.
func TestRestore(t *testing.T) {
	lost := startEmbedded(t, t.TempDir())
	s := etcd.NewEmbedded(lost, etcd.DefaultPrefix, quiet)
	busy(t, s)
	if err := etcd.KeepSettings(t.Context(), lost.Client(), etcd.DefaultPrefix, []byte("settings")); err != nil {
		t.Fatal(err)
	}
	want := known(t, s, true)
	then, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := save(t, lost)
	after, err := s.Create(t.Context(), storetest.Rule(t, "default", "after", 1))
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	got, err := restore(t, file, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Then != then || got.Now <= after.Revision() || string(got.Settings) != "settings" || len(got.Unreadable) != 0 {
		t.Errorf("%+v, want the revision %d", got, then)
	}
	back := etcd.NewEmbedded(startEmbedded(t, dir), etcd.DefaultPrefix, quiet)
	if diff := cmp.Diff(want, known(t, back, true)); diff != "" {
		t.Error(diff)
	}
	now, err := back.Revision(t.Context())
	if err != nil || now != got.Now {
		t.Errorf("revision %d, %v, want %d", now, err, got.Now)
	}
	for _, revision := range []int64{1, then - 1, then, after.Revision(), after.Revision() + 1000} {
		if err := watched(t, back, revision); !errors.Is(err, store.ErrExpired) {
			t.Errorf("watch from %d: %v", revision, err)
		}
		if _, err := back.List(t.Context(), store.Scope{}, store.ListOptions{Exact: revision}); !errors.Is(err, store.ErrExpired) {
			t.Errorf("list at %d: %v", revision, err)
		}
	}
	made, err := back.Create(t.Context(), storetest.Rule(t, "default", "after", 2))
	if err != nil || made.Revision() <= now {
		t.Errorf("made at %d, %v", made.Revision(), err)
	}
}

// watched returns the error with which a watch from a revision begins.
func watched(t *testing.T, s store.Reader, revision int64) error {
	t.Helper()
	w, err := s.Watch(t.Context(), store.Scope{}, revision)
	if err != nil {
		return err
	}
	for range w.Batches() {
		t.Errorf("a watch from %d goes on", revision)
	}
	return w.Err()
}

// TestRestoreOfAnotherPrefix checks that a wrong prefix is refused with the prefixes
// that exist, unless the snapshot is empty. A prefix whose objects are all deleted is
// valid.
func TestRestoreOfAnotherPrefix(t *testing.T) {
	as := func(file, prefix string) error {
		_, err := etcd.Restore(t.Context(), etcd.RestoreOptions{File: file, Dir: t.TempDir(), Prefix: prefix, Log: quiet})
		return err
	}
	e := startEmbedded(t, t.TempDir())
	if err := etcd.KeepSettings(t.Context(), e.Client(), "/a/b", []byte("settings")); err != nil {
		t.Fatal(err)
	}
	if err := as(save(t, e), "/a/b"); err != nil {
		t.Errorf("of an empty store: %v", err)
	}
	put(t, e.Client(), "/elsewhere", "something")
	if err := as(save(t, e), "/a/b"); err == nil || !strings.Contains(err.Error(), "1 keys are of something else") {
		t.Errorf("of others: %v", err)
	}
	s := etcd.NewEmbedded(e, "/a/b", quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := as(save(t, e), "/a"); err == nil || !strings.Contains(err.Error(), `have "/a/b"`) {
		t.Errorf("of a wrong prefix: %v", err)
	}
	if _, err := s.Delete(t.Context(), made.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	file := save(t, e)
	if err := as(file, "/a/b"); err != nil {
		t.Errorf("of a store that is empty now: %v", err)
	}
	if err := as(file, "/a"); err == nil || !strings.Contains(err.Error(), `have "/a/b"`) {
		t.Errorf("of a wrong prefix, beside a store that is empty now: %v", err)
	}
}

// TestRestoreAgain checks that a snapshot of a restored store can be restored, and that
// its clock leaps again.
func TestRestoreAgain(t *testing.T) {
	e := startEmbedded(t, t.TempDir())
	busy(t, etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet))
	var last int64
	for range 2 {
		dir := t.TempDir()
		got, err := restore(t, save(t, e), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.Now <= last || got.Objects == 0 {
			t.Errorf("%+v after %d", got, last)
		}
		last = got.Now
		e = startEmbedded(t, dir)
	}
}

// TestDamagedSnapshot checks that nothing is restored from a damaged snapshot.
func TestDamagedSnapshot(t *testing.T) {
	e := startEmbedded(t, t.TempDir())
	busy(t, etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet))
	file := save(t, e)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	status, err := embedded.ReadSnapshot(file)
	if err != nil || status.Bytes != int64(len(whole)) || status.Keys == 0 || len(status.SHA256) != 64 {
		t.Errorf("%+v, %v", status, err)
	}
	for name, text := range map[string][]byte{
		"one bit":        slices.Concat(whole[:len(whole)/2], []byte{whole[len(whole)/2] ^ 1}, whole[len(whole)/2+1:]),
		"cut off":        whole[:len(whole)-4096],
		"no checksum":    whole[:len(whole)-32],
		"another's sum":  slices.Concat(whole[:len(whole)-1], []byte{whole[len(whole)-1] ^ 1}),
		"something else": []byte(strings.Repeat("no snapshot", 1000)),
		"empty":          nil,
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.ReadSnapshot(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: status: %v", name, err)
		}
		dir := filepath.Join(t.TempDir(), "data")
		if _, err := restore(t, file, dir); err == nil {
			t.Errorf("%s was restored", name)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: there is a folder: %v", name, err)
		}
	}
}

// TestRestoreWhere checks that a folder with content is not touched. A folder in which
// a restore was killed accepts another restore, but no server.
func TestRestoreWhere(t *testing.T) {
	running := t.TempDir()
	e := startEmbedded(t, running)
	busy(t, etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet))
	file := save(t, e)
	if _, err := restore(t, file, running); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("into the folder of a running server: %v", err)
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t, file, dir); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("into a folder with a file: %v", err)
	}
	if err := os.Rename(mine, filepath.Join(dir, ".restoring-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet}); err == nil || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("started where a restore was killed: %v", err)
	}
	if _, err := restore(t, file, dir); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".restoring-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	startEmbedded(t, dir)
}
