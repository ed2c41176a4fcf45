package re2

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxClasses is the maximum number of classes of Unicode characters, such as \pL,
// in an expression. Each has up to 712 ranges, whatever Envoy makes of it.
const maxClasses = 8

// checkEscapes rejects escapes that Go reads and RE2 does not, and more than
// maxClasses classes. It ignores escapes that Go does not read: the parser reports
// them, and reads nothing after them.
func checkEscapes(expr string) error {
	classes := 0
	for {
		at := strings.IndexByte(expr, '\\')
		if at < 0 || at+1 == len(expr) {
			return nil
		}
		escape, arg := expr[at+1], expr[at+2:]
		used := 0
		switch escape {
		case 'Q':
			_, expr, _ = strings.Cut(arg, `\E`)
			continue
		case 'p', 'P':
			name, n := argument(arg)
			used = n
			if n == 0 {
				return nil
			}
			if classes++; classes > maxClasses {
				return fmt.Errorf("more than %d classes of Unicode characters such as \\%c%s, the most allowed", maxClasses, escape, arg[:n])
			}
			if name = strings.TrimPrefix(name, "^"); !hasClass(name) {
				return fmt.Errorf("there are no characters called \\%c{%s} to Envoy: take a general category such as L or Lu, or a script such as Greek, spelled like this", escape, name)
			}
		case 'x':
			digits, n := argument(arg)
			used = n
			if code, err := strconv.ParseUint(digits, 16, 32); err == nil && n > len(digits) && code > unicode.MaxLatin1 {
				return fmt.Errorf("characters in this form may go up to \\x{FF}, found \\x{%s}: write the character itself", digits)
			}
		case '1', '2', '3', '4', '5', '6', '7':
			if code := octal(expr[at+1:]); code > unicode.MaxLatin1 {
				return fmt.Errorf("characters in this form may go up to \\377, found \\%o", code)
			}
		}
		expr = arg[used:]
	}
}

// argument returns the text in braces, or else the first character, and the length
// n of all of it. name is empty if the expression ends too early.
func argument(text string) (name string, n int) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		name, _, closed := strings.Cut(inner, "}")
		if !closed {
			return "", 0
		}
		return name, len(name) + len("{}")
	}
	_, n = utf8.DecodeRuneInString(text)
	return text[:n], n
}

// octal reads up to three octal digits.
func octal(text string) uint64 {
	n := 0
	for n < 3 && n < len(text) && '0' <= text[n] && text[n] <= '7' {
		n++
	}
	code, _ := strconv.ParseUint(text[:n], 8, 32)
	return code
}

// hasClass reports whether RE2 has a class of characters with this name. Go has
// more: aliases (Letter), any case (greek), and three of its own.
func hasClass(name string) bool {
	switch name {
	case "Any":
		return true
	case "Cn", "LC":
		return false
	}
	_, category := unicode.Categories[name]
	_, script := unicode.Scripts[name]
	return category || script
}
