package terminal

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer passes text on as Escape writes it, however the text is split into writes.
// Several goroutines may use it at once.
type Writer struct {
	mu   sync.Mutex
	out  io.Writer
	rest []byte // the beginning of a character, less than utf8.UTFMax bytes
}

// NewWriter is a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write keeps back the beginning of a character at the end of text until the rest of
// it comes, or Flush.
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

// Flush writes the beginning of a character that nothing followed.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := string(w.rest)
	w.rest = nil
	return w.pass(rest)
}

// eraseLine goes to the beginning of the line and erases it.
const eraseLine = "\r\033[K"

// Redraw erases the line that a terminal is at, and shows a text there, which is
// escaped as one line. This is the only control sequence that a Writer writes.
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

// partial is the beginning of a character at the end of a text.
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
