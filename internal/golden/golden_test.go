package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const archive = "A case.\n-- in --\ninput\n-- out --\nwanted\n-- gone --\nonce\n"

// recorder stands for the test that uses an archive.
type recorder struct {
	testing.TB
	errors   []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Failed() bool     { return len(r.errors) > 0 }
func (r *recorder) Skipped() bool    { return r.skipped }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// use runs a test over the archive, with or without -update, and returns its
// complaints and the archive afterwards.
func use(t *testing.T, updating, skipped bool, test func(*Archive)) (complaints, after string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.txtar")
	if err := os.WriteFile(path, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(before bool) { *update = before }(*update)
	*update = updating
	r := &recorder{TB: t, skipped: skipped}
	test(Open(r, path))
	for _, f := range r.cleanups {
		f()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.errors, "\n"), string(text)
}

func TestWant(t *testing.T) {
	complete := func(a *Archive) {
		if got := string(a.Input("in")); got != "input\n" {
			t.Errorf("input: got %q", got)
		}
		a.Want("out", []byte("wanted"))
		a.Want("gone", []byte("once\n"))
	}
	changed := func(a *Archive) {
		a.Input("in")
		a.Want("out", []byte("changed\n"))
		a.Want("gone", nil)
		a.Want("new", []byte("news"))
	}
	for _, tc := range []struct {
		name     string
		updating bool
		skipped  bool
		test     func(*Archive)
		want     []string // in the complaints
		after    string
	}{
		{name: "equal", test: complete, after: archive},
		{name: "update keeps what is equal", updating: true, test: complete, after: archive},
		{name: "different", test: changed, want: []string{"out differs", "gone differs", "new differs"}, after: archive},
		{name: "update", updating: true, test: changed, after: "A case.\n-- in --\ninput\n-- out --\nchanged\n-- new --\nnews\n"},
		{name: "unclaimed", test: func(a *Archive) { a.Input("in") }, want: []string{"no test reads out", "no test reads gone"}, after: archive},
		{name: "update drops the unclaimed", updating: true, test: func(a *Archive) { a.Input("in") }, after: "A case.\n-- in --\ninput\n"},
		{name: "skipped", skipped: true, test: func(a *Archive) { a.Input("in") }, after: archive},
		{name: "skipped update", updating: true, skipped: true, test: func(a *Archive) { a.Input("in") }, after: archive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			complaints, after := use(t, tc.updating, tc.skipped, tc.test)
			for _, want := range tc.want {
				if !strings.Contains(complaints, want) {
					t.Errorf("want a complaint with %q, got %q", want, complaints)
				}
			}
			if len(tc.want) == 0 && complaints != "" {
				t.Errorf("got complaints: %s", complaints)
			}
			if d := cmp.Diff(tc.after, after); d != "" {
				t.Errorf("archive afterwards (-want +got):\n%s", d)
			}
		})
	}
}
