// Package terminal makes text from outside safe to show on a terminal. It escapes
// characters that control a terminal, change the order of a line or are invisible, for
// example as \x1b and \u202e.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe reports whether a character must not reach a terminal. Unsafe characters are
// control characters (C0, DEL and C1), format characters such as bidirectional controls
// and those without width, and line and paragraph separators. Newline and tab are
// unsafe too.
func Unsafe(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Escape returns a text of any number of lines with escapes in place of unsafe
// characters and of invalid UTF-8. Newlines and tabs stay.
//
// An unsafe character that a JSON encoder leaves in a string becomes a JSON escape, so
// an encoded document still decodes to the same value.
func Escape(text string) string { return escape(text, stays) }

// Line returns a text as one line and one table cell. It is like Escape, but also
// escapes newlines and tabs.
func Line(text string) string { return escape(text, func(rune) bool { return false }) }

// stays reports whether an unsafe character is kept because it formats the text.
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

// unsafeIndex returns the index of the first byte that must be escaped, or -1.
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

// escaped returns the escape of a character: that of Go below the space, which a JSON
// encoder never leaves unescaped, and that of JSON from there on.
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
