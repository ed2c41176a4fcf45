package main

import (
	"errors"
	"fmt"
)

// Exit codes, for scripts.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitInterrupted is the exit code that shells use after Ctrl-C.
	exitInterrupted = 130
)

// errReported ends a command that has already reported its failure.
var errReported = errors.New("failed")

// exitError ends a command with a specific exit code.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// exitWith returns an error that ends a command with an exit code.
func exitWith(err error, code int) error { return &exitError{err, code} }

// exitCode returns the exit code of a failed command.
func exitCode(err error) int {
	var own *exitError
	switch {
	case isUsage(err):
		return exitUsage
	case errors.As(err, &own):
		return own.code
	}
	return exitFailed
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// usage returns a mistake in the command line.
func usage(err error) error { return &usageError{err} }

// isUsage reports whether an error is a mistake in the command line.
func isUsage(err error) bool {
	var mistake *usageError
	return errors.As(err, &mistake)
}

// usagef returns a mistake in the command line, with a text.
func usagef(format string, args ...any) error {
	return usage(fmt.Errorf(format, args...))
}
