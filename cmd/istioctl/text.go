package main

import (
	"fmt"
	"strings"
)

// count returns "1 error", "2 errors".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine returns a text without line breaks, as a warning in a header has none.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
