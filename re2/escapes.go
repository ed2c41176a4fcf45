package re2

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// checkEscapes finds what Go reads after a backslash and RE2 does not. The
// expression must be one that Go reads.
func checkEscapes(expr string) error {
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

// argument is what stands in braces, or else the first byte; n is the length
// of it all.
func argument(text string) (name string, n int) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		name, _, _ = strings.Cut(inner, "}")
		return name, len(name) + len("{}")
	}
	return text[:1], 1
}

// octal reads up to three digits.
func octal(text string) uint64 {
	n := 0
	for n < 3 && n < len(text) && '0' <= text[n] && text[n] <= '7' {
		n++
	}
	code, _ := strconv.ParseUint(text[:n], 8, 32)
	return code
}

// hasClass reports whether RE2 has a class of characters of this name. Go has
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
