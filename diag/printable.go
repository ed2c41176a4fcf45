package diag

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable escapes characters that a terminal would obey instead of showing.
func printable(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			out.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return out.String()
}
