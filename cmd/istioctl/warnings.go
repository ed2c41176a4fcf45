package main

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// warn prints a warning in one line.
func (s *session) warn(text string) { fmt.Fprintf(s.Stderr, "Warning: %s\n", text) }

// showProblems prints the problems found in files, with their positions.
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

// warnUnknown prints a warning of the server unless it was already shown. The server
// finds the same problems in a file as the client, but does not know their position.
func (s *session) warnUnknown(text string) {
	for _, known := range s.shown {
		if strings.HasSuffix(text, known) {
			return
		}
	}
	s.warn(text)
}
