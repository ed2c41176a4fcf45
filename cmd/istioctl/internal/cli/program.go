package cli

import "io"

// Program is the program with all its inputs and outputs, so that a test can supply and
// observe them.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdinIsTerminal means that a person can answer.
	StdinIsTerminal bool
	// StdoutIsTerminal means that single values are escaped too. A program receives them
	// unchanged.
	StdoutIsTerminal bool
	// StderrIsTerminal allows progress to be drawn.
	StderrIsTerminal bool
	Getenv           func(string) string
	// Version is the version that the program reports to people and to servers.
	Version string
	// User returns the user's name in the operating system.
	User func() string

	// Outside is the program from which Escaped made this one. Its streams do not escape.
	Outside *Program
}

// Escaped returns the program with streams that escape all text, so that no text can
// control the terminal. Stdout leads to out. The returned function flushes the streams.
func (c *Program) Escaped(out io.Writer) (inside *Program, flush func()) {
	inside = new(*c)
	stdout, stderr := newStream(out, c.StdoutIsTerminal), newStream(c.Stderr, c.StderrIsTerminal)
	inside.Stdout, inside.Stderr, inside.Outside = stdout, stderr, c
	return inside, func() { _, _ = stdout.Flush(), stderr.Flush() }
}
