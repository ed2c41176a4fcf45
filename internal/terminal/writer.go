package terminal

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer writes text as Escape does, however the text is split into writes. It is safe
// for concurrent use.
type Writer struct {
	mu   sync.Mutex
	out  io.Writer
	rest []byte // the incomplete character at the end, less than utf8.UTFMax bytes
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write holds back an incomplete character at the end of text until the rest of it or
// Flush follows.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(w.rest, text...)
	whole := len(all) - len(partial(all))
	w.rest = append([]byte(nil), all[whole:]...)
	if err := w.pass(string(all[:whole])); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes an incomplete character that Write held back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := string(w.rest)
	w.rest = nil
	return w.pass(rest)
}

// eraseLine moves to the beginning of the line and erases it.
const eraseLine = "\r\033[K"

// Redraw erases the terminal's current line and writes a text there, escaped as one
// line. This is the only control sequence that a Writer writes.
func (w *Writer) Redraw(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.out, eraseLine+Line(text))
	return err
}

func (w *Writer) pass(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w.out, Escape(text))
	return err
}

// partial returns the incomplete character at the end of a text.
func partial(text []byte) []byte {
	for i := len(text) - 1; i >= 0 && len(text)-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRune(text[i:]) {
				return nil
			}
			return text[i:]
		}
	}
	return nil
}
