// Package terminal makes text that comes from outside safe to show on a terminal.
// Characters that steer a terminal, change the order of a line or cannot be seen are
// written as escapes, such as \x1b and \u202e.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe reports whether a character must not reach a terminal: control characters
// (C0, DEL and C1), format characters such as the bidirectional controls and those
// of no width, and the separators of lines and paragraphs. The line end and the tab
// are among them.
func Unsafe(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Escape is a text of any number of lines with escapes in the place of unsafe
// characters and of bytes that are not UTF-8. Line ends and tabs stay.
//
// What a JSON encoder leaves unsafe in a string becomes an escape of JSON, so that a
// document that was encoded decodes to the same value.
func Escape(text string) string { return escape(text, stays) }

// Line is a text as one line and one cell of a table: as Escape, but line ends and
// tabs are escaped too.
func Line(text string) string { return escape(text, func(rune) bool { return false }) }

// stays are the unsafe characters that a text has its form from.
func stays(r rune) bool { return r == '\n' || r == '\t' }

func escape(text string, keep func(rune) bool) string {
	begin := unsafeIndex(text, keep)
	if begin < 0 {
		return text
	}
	var out strings.Builder
	out.WriteString(text[:begin])
	for i := begin; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case Unsafe(r) && !keep(r):
			out.WriteString(escaped(r))
		default:
			out.WriteString(text[i : i+size])
		}
		i += size
	}
	return out.String()
}

// unsafeIndex is where the first byte is that must be escaped, -1 for nowhere.
func unsafeIndex(text string, keep func(rune) bool) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || Unsafe(r) && !keep(r) {
			return i
		}
		i += size
	}
	return -1
}

// escaped is a character as in a Go string below the space, which a JSON encoder
// leaves nowhere, and as in a JSON string from there on.
func escaped(r rune) string {
	if r < ' ' {
		quoted := strconv.QuoteRune(r)
		return quoted[1 : len(quoted)-1]
	}
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
