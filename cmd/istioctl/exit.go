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

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}
