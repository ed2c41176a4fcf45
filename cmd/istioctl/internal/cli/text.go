package cli

import (
	"fmt"
	"strings"
)

// Count returns "1 error", "2 errors".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OneLine returns a text without line breaks, for comparison with a warning in a header.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
