// Package golden keeps what tests expect in generated pages, and in txtar archives: one archive a case,
// inputs and wanted outputs side by side, a leading comment that says what the
// case is about. `go test -update` writes the outputs anew.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Page compares a text, such as a generated page, with the file that holds it;
// -update writes it.
func Page(t testing.TB, file, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), text); d != "" {
		t.Errorf("%s differs (-want +got; -update accepts it):\n%s", file, d)
	}
}

// Archive is one case. It belongs to one test and is not safe for concurrent
// use.
type Archive struct {
	t       testing.TB
	path    string
	arc     *txtar.Archive
	claimed map[string]bool
}

// Open reads the archive at path; with -update a missing one starts empty. When
// the test ends, each file that nothing asked for fails it, and with -update
// the archive is written back without those. A test that is skipped has not
// come to all of its files: nothing is said of them, and nothing written.
func Open(t testing.TB, path string) *Archive {
	t.Helper()
	arc, err := txtar.ParseFile(path)
	switch {
	case os.IsNotExist(err) && *update:
		arc = &txtar.Archive{}
	case err != nil:
		t.Fatalf("golden: %v (with -update it is written)", err)
	}
	a := &Archive{t: t, path: path, arc: arc, claimed: map[string]bool{}}
	t.Cleanup(a.close)
	return a
}

// Input is the content of a file, nil when the archive has none of that name.
func (a *Archive) Input(name string) []byte {
	a.claimed[name] = true
	if i := a.index(name); i >= 0 {
		return a.arc.Files[i].Data
	}
	return nil
}

// Want compares got with a file of the archive. A text without a final newline
// gets one; an empty text wants the file to be absent.
func (a *Archive) Want(name string, got []byte) {
	a.t.Helper()
	if len(got) > 0 && !bytes.HasSuffix(got, []byte("\n")) {
		got = append(slices.Clone(got), '\n')
	}
	want := a.Input(name)
	if *update {
		a.set(name, got)
		return
	}
	if d := cmp.Diff(lines(want), lines(got)); d != "" {
		a.t.Errorf("%s: %s differs (-want +got; -update accepts it):\n%s", a.path, name, d)
	}
}

func (a *Archive) index(name string) int {
	return slices.IndexFunc(a.arc.Files, func(f txtar.File) bool { return f.Name == name })
}

func (a *Archive) set(name string, data []byte) {
	i := a.index(name)
	switch {
	case len(data) == 0 && i >= 0:
		a.arc.Files = slices.Delete(a.arc.Files, i, i+1)
	case len(data) == 0:
	case i >= 0:
		a.arc.Files[i].Data = data
	default:
		a.arc.Files = append(a.arc.Files, txtar.File{Name: name, Data: data})
	}
}

func (a *Archive) close() {
	if a.t.Skipped() {
		return
	}
	unclaimed := func(f txtar.File) bool { return !a.claimed[f.Name] }
	if !*update {
		for _, f := range a.arc.Files {
			if unclaimed(f) {
				a.t.Errorf("%s: no test reads %s", a.path, f.Name)
			}
		}
		return
	}
	if a.t.Failed() {
		return
	}
	a.arc.Files = slices.DeleteFunc(a.arc.Files, unclaimed)
	if err := os.WriteFile(a.path, txtar.Format(a.arc), 0o644); err != nil {
		a.t.Errorf("golden: %v", err)
	}
}

func lines(text []byte) []string { return strings.Split(string(text), "\n") }
