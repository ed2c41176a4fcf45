package cli

import (
	"errors"
	"fmt"
)

// Exit codes, for scripts.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitInterrupted is the exit code that shells use after Ctrl-C.
	ExitInterrupted = 130
)

// ErrReported ends a command that has already reported its failure.
var ErrReported = errors.New("failed")

// exitError ends a command with a specific exit code.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// ExitWith returns an error that ends a command with an exit code.
func ExitWith(err error, code int) error { return &exitError{err, code} }

// ExitCode returns the exit code of a failed command.
func ExitCode(err error) int {
	var own *exitError
	switch {
	case IsUsage(err):
		return ExitUsage
	case errors.As(err, &own):
		return own.code
	}
	return ExitFailed
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// Usage returns a mistake in the command line.
func Usage(err error) error { return &usageError{err} }

// IsUsage reports whether an error is a mistake in the command line.
func IsUsage(err error) bool {
	var mistake *usageError
	return errors.As(err, &mistake)
}

// Usagef returns a mistake in the command line, with a text.
func Usagef(format string, args ...any) error {
	return Usage(fmt.Errorf(format, args...))
}
