package rotation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/credential"
)

// Files are where a pair is. Those that are "" it does not have.
type Files struct{ CertificateFile, KeyFile, CAFile string }

// The words for Files, as settings have them.
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

// maxFile bounds what is read of one.
const maxFile = 1 << 20

// Read is their state at first sight.
func (f Files) Read() State {
	w := followed{files: f}
	w.look(time.Now())
	return w.state
}

// read is what is in the files, whatever that is.
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
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", err)
	case len(text) == 0:
		return "", fmt.Errorf("%s is empty", name)
	case len(text) > maxFile:
		return "", fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return string(text), nil
}

// check is why a pair cannot be used, and else what its owner should know.
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

// followed are the files of one name, with what the last look has found.
type followed struct {
	files Files
	state State

	looked  bool
	pair    credential.Pair // that was read
	failure string          // why none was
	doubt   string          // what is told if the next look finds the same
}

// look reads the files. What cannot be used is told when a second look finds the very
// same, as it may be half of a change; and at once where there is nothing to go on with.
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
