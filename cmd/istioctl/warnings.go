package main

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// warn prints a warning, one line.
func (s *session) warn(text string) { fmt.Fprintf(s.Stderr, "Warning: %s\n", text) }

// showProblems prints what was found in files, with its place.
func (s *session) showProblems(list diag.List) {
	for _, p := range list {
		if p.Severity == diag.Error {
			fmt.Fprintf(s.Stderr, "error: %s\n", p)
			continue
		}
		s.warn(p.String())
		p.Position = nil
		s.shown = append(s.shown, oneLine(p.String()))
	}
}

// warnUnknown prints a warning of the server, unless it was already shown: the
// server finds the same in a file as we do, but cannot tell its place.
func (s *session) warnUnknown(text string) {
	for _, known := range s.shown {
		if strings.HasSuffix(text, known) {
			return
		}
	}
	s.warn(text)
}

// oneLine is a text without line ends, as a warning goes through a header.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
