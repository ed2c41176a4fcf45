package re2

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFolded is the maximum number of characters in all ranges of a case-insensitive
// expression. Envoy reads bytes and is not affected, but a program that reads the
// expression as characters looks for the other cases of each.
const maxFolded = 1 << 16

// checkRanges rejects ranges with more than maxFolded characters. It may count too
// many characters, not too few: a hyphen that makes no range counts as one.
func checkRanges(expr string) error {
	if !strings.Contains(expr, "(?") || !strings.Contains(expr, "i") {
		return nil
	}
	characters := 0
	before := rune(0)
	for at, r := range expr {
		if r == '-' {
			// checkEscapes limits the ranges that escapes can make.
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
