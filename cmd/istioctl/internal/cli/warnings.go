package cli

import (
	"fmt"
	"maps"
	"slices"
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
	if !s.isShown(text) {
		s.Warn(text)
	}
}

func (s *Session) isShown(text string) bool {
	return slices.ContainsFunc(s.shown, func(known string) bool { return strings.HasSuffix(text, known) })
}

// mostOfCode is how many warnings of one code WarnAll prints.
const mostOfCode = 10

// WarnAll is WarnUnknown for many warnings. Of each code it prints the first mostOfCode, and
// then the number of the others.
func (s *Session) WarnAll(texts []string) {
	counts := map[string]int{}
	for _, text := range texts {
		if s.isShown(text) {
			continue
		}
		code, _, _ := strings.Cut(text, ":")
		if _, is := diag.Code(code).Message(); is {
			if counts[code]++; counts[code] > mostOfCode {
				continue
			}
		}
		s.Warn(text)
	}
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		if more := counts[code] - mostOfCode; more > 0 {
			s.Warn(fmt.Sprintf("… and %d more of %s", more, code))
		}
	}
}
