package main

import "io"

// CLI is the program with all its inputs and outputs, so that a test can supply and
// observe them.
type CLI struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdoutIsTerminal also escapes single values, which a program receives unchanged.
	StdoutIsTerminal bool
	// StderrIsTerminal allows progress to be drawn.
	StderrIsTerminal bool
	Getenv           func(string) string
	// User returns the user's name in the operating system.
	User func() string

	// outside is the CLI that Run was called on. Its streams do not escape.
	outside *CLI
}
