package cli

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// Warn prints a warning in one line.
func (s *Session) Warn(text string) { fmt.Fprintf(s.Stderr, "Warning: %s\n", text) }

// ShowProblems prints the problems found in files, with their positions.
func (s *Session) ShowProblems(list diag.List) {
	for _, p := range list {
		if p.Severity == diag.Error {
			fmt.Fprintf(s.Stderr, "error: %s\n", p)
			continue
		}
		s.Warn(p.String())
		p.Position = nil
		s.shown = append(s.shown, OneLine(p.String()))
	}
}

// WarnUnknown prints a warning of the server unless it was already shown. The server
// finds the same problems in a file as the client, but does not know their position.
func (s *Session) WarnUnknown(text string) {
	for _, known := range s.shown {
		if strings.HasSuffix(text, known) {
			return
		}
	}
	s.Warn(text)
}
