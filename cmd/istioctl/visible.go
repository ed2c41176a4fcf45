package main

import (
	"strconv"
	"strings"
	"unicode"
)

// visible is a text of an object as it may be shown on a terminal: what would steer
// that, or end the line, is written as in a Go string. What programs read stays as it
// is.
func visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}
