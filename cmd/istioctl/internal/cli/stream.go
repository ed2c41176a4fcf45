package cli

import (
	"io"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// stream is stdout or stderr. It escapes everything that a command writes, so that no
// text can control the terminal.
type stream struct {
	*terminal.Writer
	raw        io.Writer
	isTerminal bool
}

func newStream(raw io.Writer, isTerminal bool) *stream {
	return &stream{terminal.NewWriter(raw), raw, isTerminal}
}

// ForProgram returns the raw stream if a program reads the output, and the escaping one if
// a person does. It is for single values, such as those of a JSONPath. Documents do not
// need it, because escapes are a part of their format.
func ForProgram(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok && !s.isTerminal {
		return s.raw
	}
	return w
}

// Progress draws text on a terminal, over what was drawn before.
func (c *Program) Progress(text string) {
	if s, ok := c.Stderr.(*stream); ok && s.isTerminal {
		_ = s.Redraw(text) // Nothing can be reported if stderr fails.
	}
}

// ClearProgress removes what Progress drew.
func (c *Program) ClearProgress() { c.Progress("") }
