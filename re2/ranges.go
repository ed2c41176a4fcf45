package re2

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFolded is how many characters the ranges of an expression without case may have
// together. Envoy reads bytes and does not care, but whoever reads such an
// expression in whole characters looks for the other cases of each.
const maxFolded = 1 << 16

// checkRanges finds ranges that are beyond maxFolded. It counts too many characters
// rather than too few: a hyphen that makes no range counts as one.
func checkRanges(expr string) error {
	if !strings.Contains(expr, "(?") || !strings.Contains(expr, "i") {
		return nil
	}
	characters := 0
	before := rune(0)
	for at, r := range expr {
		if r == '-' {
			// Escapes reach no further than checkEscapes allows.
			if last, _ := utf8.DecodeRuneInString(expr[at+1:]); last > before {
				characters += int(last - before)
			}
			if characters > maxFolded {
				return fmt.Errorf("the ranges in it have more than %d characters, the most allowed without case", maxFolded)
			}
		}
		before = r
	}
	return nil
}
