package main

import (
	"io"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// stream is stdout or stderr. What a command writes there is escaped, whoever it
// comes from, so that it cannot steer a terminal.
type stream struct {
	*terminal.Writer
	raw        io.Writer
	isTerminal bool
}

func newStream(raw io.Writer, isTerminal bool) *stream {
	return &stream{terminal.NewWriter(raw), raw, isTerminal}
}

// forProgram is a stream as it is where a program reads it, and escaped where a
// person does. It is for single values, such as those of a JSONPath: a document does
// not need it, for its escapes are a part of the format.
func forProgram(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok && !s.isTerminal {
		return s.raw
	}
	return w
}

// progress is drawn where somebody looks, over what was drawn before.
func (c *CLI) progress(text string) {
	if s, ok := c.Stderr.(*stream); ok && s.isTerminal {
		_ = s.Redraw(text) // As with all of stderr, nobody is left to tell.
	}
}

func (c *CLI) clearProgress() { c.progress("") }
