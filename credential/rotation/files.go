package rotation

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/internal/wholefile"
)

// Files are the paths of the parts of a pair. The pair lacks the parts whose path
// is "".
type Files struct{ CertificateFile, KeyFile, CAFile string }

// The names of the fields of Files in settings.
const (
	certificateFile = "certificateFile"
	keyFile         = "keyFile"
	caFile          = "caFile"
)

var fileOf = map[string]string{
	credential.CertificateField: certificateFile,
	credential.KeyField:         keyFile,
	credential.CAField:          caFile,
}

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 20

// Read reads the files once and returns their state.
func (f Files) Read() State {
	w := followed{files: f}
	w.look(time.Now())
	return w.state
}

// read returns the contents of the files, unchecked.
func (f Files) read() (credential.Pair, error) {
	var texts [3]string
	for i, file := range []struct{ word, name string }{{certificateFile, f.CertificateFile}, {keyFile, f.KeyFile}, {caFile, f.CAFile}} {
		if file.name == "" {
			continue
		}
		text, err := readFile(file.name)
		if err != nil {
			return credential.Pair{}, fmt.Errorf("%s %w", file.word, err)
		}
		texts[i] = text
	}
	return credential.Pair{Certificate: texts[0], Key: credential.NewKey(texts[1]), CACertificates: texts[2]}, nil
}

func readFile(name string) (string, error) {
	text, err := wholefile.ReadAtMost(name, maxFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", err)
	case len(text) == 0:
		return "", fmt.Errorf("%s is empty", name)
	}
	return string(text), nil
}

// check returns an error if a pair cannot be used, and otherwise advice for its
// owner.
func check(pair credential.Pair, now time.Time) (advice string, err error) {
	if credential.IsMark(strings.TrimSpace(pair.Key.Reveal())) {
		return "", errors.New(keyFile + " has the mark of a private key in place of one")
	}
	var bad, odd []string
	for _, flaw := range pair.Check(now) {
		text := fileOf[flaw.Field] + " " + flaw.Message
		if flaw.Advice {
			odd = append(odd, text)
		} else {
			bad = append(bad, text)
		}
	}
	if len(bad) > 0 {
		return "", errors.New(strings.Join(bad, "; "))
	}
	return strings.Join(odd, "; "), nil
}

// followed is a set of files with the result of the last look.
type followed struct {
	files Files
	state State

	looked  bool
	pair    credential.Pair // as last read
	failure string          // why none was read
	doubt   string          // reported if the next look finds the same
}

// look reads the files. An unusable pair may be half of a change, so look reports
// it only when a second look finds exactly the same, or at once if there is no pair
// in use.
func (w *followed) look(now time.Time) {
	pair, err := w.files.read()
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if w.looked && failure == w.failure && pair.Equal(w.pair) {
		w.confirm()
		return
	}
	first := !w.looked
	w.looked, w.pair, w.failure, w.doubt = true, pair, failure, ""
	advice := ""
	if err == nil {
		advice, err = check(pair, now)
	}
	switch {
	case err == nil && pair.Equal(w.state.Pair):
		w.state.Problem = advice
	case err == nil:
		w.state = State{pair, advice}
	default:
		w.doubt = err.Error()
		if first {
			w.confirm()
		}
	}
}

func (w *followed) confirm() {
	if w.doubt == "" {
		return
	}
	w.state.Problem, w.doubt = w.doubt, ""
	if w.state.Pair != (credential.Pair{}) {
		w.state.Problem += "; the last good ones stay"
	}
}
