package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestManyWarningsOfACode: thousands of warnings of one kind hide no other one.
func TestManyWarningsOfACode(t *testing.T) {
	var out bytes.Buffer
	s := &Session{Program: &Program{Stderr: &out}, shown: []string{"RouteRule a/shown: x"}}
	var texts []string
	for i := range 5000 {
		texts = append(texts, fmt.Sprintf("PA0101: RouteRule a/r-%d: no ServiceEntry declares this host", i), "PA0101: RouteRule a/shown: x")
	}
	texts = append(texts, "PA0201: RouteRule a/last: never used")
	for range 12 {
		texts = append(texts, "the server says something else: without a code")
	}
	s.WarnAll(texts)
	text := out.String()
	if lines := strings.Count(text, "\n"); lines != 10+1+12+1 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	for _, want := range []string{"a/r-9:", "PA0201: RouteRule a/last", "Warning: … and 4990 more of PA0101\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
