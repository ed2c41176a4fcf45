package cli

import "io"

// Program is the program with all its inputs and outputs, so that a test can supply and
// observe them.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdoutIsTerminal also escapes single values, which a program receives unchanged.
	StdoutIsTerminal bool
	// StderrIsTerminal allows progress to be drawn.
	StderrIsTerminal bool
	Getenv           func(string) string
	// Version is the version that the program reports to people and to servers.
	Version string
	// User returns the user's name in the operating system.
	User func() string

	// Outside is the program that this one was made of by Escaped. Its streams do not
	// escape.
	Outside *Program
}

// Escaped returns the program with streams that escape all that is written to them, so
// that no text can control the terminal, and a function that flushes them. Stdout leads
// to out.
func (c *Program) Escaped(out io.Writer) (inside *Program, flush func()) {
	inside = new(*c)
	stdout, stderr := newStream(out, c.StdoutIsTerminal), newStream(c.Stderr, c.StderrIsTerminal)
	inside.Stdout, inside.Stderr, inside.Outside = stdout, stderr, c
	return inside, func() { _, _ = stdout.Flush(), stderr.Flush() }
}
