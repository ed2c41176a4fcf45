// Package golden keeps the expected results of tests in generated pages and in txtar
// archives. An archive is one case: inputs beside expected outputs, and a leading comment
// about the case. `go test -update` writes the outputs anew.
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

// Page compares a text, such as a generated page, with the file that contains it. With
// -update it writes the file.
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

// Archive is one case. It belongs to one test and is not safe for concurrent use.
type Archive struct {
	t       testing.TB
	path    string
	arc     *txtar.Archive
	claimed map[string]bool
}

// Open reads the archive at path. With -update a missing one starts empty. When the test
// ends, each file that the test did not ask for is a failure; with -update the archive is
// written without those files. For a skipped test, which may not have reached all files,
// neither happens.
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

// Input returns the content of a file, nil if the archive has no such file.
func (a *Archive) Input(name string) []byte {
	a.claimed[name] = true
	if i := a.index(name); i >= 0 {
		return a.arc.Files[i].Data
	}
	return nil
}

// Want compares got with a file of the archive. A text without a final newline gets one.
// For an empty text the file must be absent.
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
