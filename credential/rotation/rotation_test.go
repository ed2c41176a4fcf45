package rotation_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// world is a folder with files that are followed under one name.
type world struct {
	t         *testing.T
	dir       string
	authority *selfsigned.Authority
	follower  *rotation.Follower
	log       bytes.Buffer
}

func open(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), authority: selfsigned.NewAuthority(t, t.TempDir())}
}

// follow begins with what is in a folder below the world's.
func (w *world) follow(folder string) {
	at := func(name string) string { return filepath.Join(w.dir, folder, name) }
	w.follower = rotation.New(map[string]rotation.Files{
		"it": {CertificateFile: at("tls.crt"), KeyFile: at("tls.key"), CAFile: at("ca.crt")},
	}, slog.New(slog.NewTextHandler(&w.log, nil)))
}

// issue is a pair for the host, with the authority.
func (w *world) issue(host string) credential.Pair {
	certificate, key := w.authority.PEM(w.t, host)
	return credential.Pair{Certificate: certificate, Key: credential.NewKey(key), CACertificates: w.authority.AuthorityPEM(w.t)}
}

func (w *world) write(file, text string) {
	w.t.Helper()
	file = filepath.Join(w.dir, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(folder string, pair credential.Pair) {
	w.t.Helper()
	w.write(folder+"/tls.crt", pair.Certificate)
	w.write(folder+"/tls.key", pair.Key.Reveal())
	w.write(folder+"/ca.crt", pair.CACertificates)
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(to, name string) {
	w.t.Helper()
	if err := os.Symlink(to, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// has fails unless the state is this pair, with a problem that has the words, or
// without one; whoever waits has heard exactly if it is another state than before.
func (w *world) has(pair credential.Pair, problem string) {
	w.t.Helper()
	s := w.follower.State("it")
	if !s.Pair.Equal(pair) {
		w.t.Errorf("the pair is that of %v, want that of %v", credential.Summaries(s.Pair.Certificate), credential.Summaries(pair.Certificate))
	}
	if (s.Problem == "") != (problem == "") || !strings.Contains(s.Problem, problem) {
		w.t.Errorf("the problem is %q, want %q", s.Problem, problem)
	}
}

// look reports whether it changed something.
func (w *world) look() bool {
	changed := w.follower.Changed()
	w.follower.Look()
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func (w *world) taken(pair credential.Pair) {
	w.t.Helper()
	if !w.look() {
		w.t.Error("nobody is told")
	}
	w.has(pair, "")
	if w.look() {
		w.t.Error("one is told, and nothing has changed")
	}
}

func TestReplacedInPlaceAndByRename(t *testing.T) {
	w := open(t)
	first, second, third := w.issue("first.example"), w.issue("second.example"), w.issue("third.example")
	w.put("here", first)
	w.follow("here")
	w.has(first, "")
	w.put("here", second)
	w.taken(second)
	w.put("new", third)
	for _, file := range []string{"tls.crt", "tls.key", "ca.crt"} {
		w.rename("new/"+file, "here/"+file)
	}
	w.taken(third)
	if n := w.follower.Taken(); n != 3 {
		t.Errorf("%d pairs were taken, want 3", n)
	}
}

// TestReplacedByLinks is as Kubernetes mounts secrets: links to what is behind
// ..data, which is replaced by another link.
func TestReplacedByLinks(t *testing.T) {
	w := open(t)
	first, second := w.issue("first.example"), w.issue("second.example")
	w.put("mount/..1", first)
	w.link("..1", "mount/..data")
	for _, file := range []string{"tls.crt", "tls.key", "ca.crt"} {
		w.link("..data/"+file, "mount/"+file)
	}
	w.follow("mount")
	w.has(first, "")
	w.put("mount/..2", second)
	if w.look() {
		t.Error("one is told of files that nothing leads to")
	}
	w.link("..2", "mount/..next")
	w.rename("mount/..next", "mount/..data")
	w.taken(second)
}

// TestHalfWritten: what does not fit together leaves the last good pair, and is told
// when it stays like that.
func TestHalfWritten(t *testing.T) {
	first, second := "first.example", "second.example"
	for name, tc := range map[string]struct {
		spoil   func(w *world, next credential.Pair)
		problem string
	}{
		"certificate before its key": {func(w *world, next credential.Pair) { w.write("here/tls.crt", next.Certificate) }, "keyFile is not a key that belongs"},
		"key before its certificate": {func(w *world, next credential.Pair) { w.write("here/tls.key", next.Key.Reveal()) }, "keyFile is not a key that belongs"},
		"cut off":                    {func(w *world, next credential.Pair) { w.write("here/tls.crt", next.Certificate[:99]) }, "certificateFile is cut off"},
		"empty":                      {func(w *world, _ credential.Pair) { w.write("here/ca.crt", "") }, "ca.crt is empty"},
		"gone":                       {func(w *world, _ credential.Pair) { w.rename("here/tls.key", "gone") }, "keyFile cannot be read"},
		"too large":                  {func(w *world, _ credential.Pair) { w.write("here/ca.crt", strings.Repeat("x", 2<<20)) }, "more than 1048576 bytes"},
		"key among certificates":     {func(w *world, next credential.Pair) { w.write("here/tls.crt", next.Certificate+next.Key.Reveal()) }, "must not hold a private key"},
		"mark in place of a key": {func(w *world, next credential.Pair) {
			w.write("here/tls.key", credential.Mark("default/it", next.Key.Reveal()))
		}, "mark of a private key"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			before, next := w.issue(first), w.issue(second)
			w.put("here", before)
			w.follow("here")
			tc.spoil(w, next)
			if w.look() {
				t.Error("what may be half of a change is told at once")
			}
			w.has(before, "")
			if !w.look() {
				t.Error("what stays bad is not told")
			}
			w.has(before, tc.problem)
			w.has(before, "the last good ones stay")
			w.put("here", next)
			w.taken(next)
			w.noKeys(before, next)
		})
	}
}

// TestBadFromTheStart: there is nothing to go on with, so it is told at once.
func TestBadFromTheStart(t *testing.T) {
	w := open(t)
	w.follow("here")
	w.has(credential.Pair{}, "cannot be read")
	pair := w.issue("first.example")
	w.put("here", pair)
	w.taken(pair)
	w.noKeys(pair)
}

// TestBackAsItWas: a problem ends with the files that are in use.
func TestBackAsItWas(t *testing.T) {
	w := open(t)
	pair := w.issue("first.example")
	w.put("here", pair)
	w.follow("here")
	w.write("here/tls.key", "none")
	w.look()
	w.look()
	w.has(pair, "keyFile")
	w.put("here", pair)
	w.taken(pair)
}

// noKeys fails if the log, or a state as it is printed, has a line of a key.
func (w *world) noKeys(pairs ...credential.Pair) {
	w.t.Helper()
	told := w.log.String() + fmt.Sprintf("%+v %#v", w.follower.States(), w.follower.States())
	for _, pair := range pairs {
		for line := range strings.Lines(pair.Key.Reveal()) {
			if strings.Contains(told, strings.TrimSpace(line)) {
				w.t.Errorf("told a line of a key: %s", told)
			}
		}
	}
}
