// Package re2 knows which regular expressions today's Envoy takes. Envoy gives
// them to RE2 byte by byte (its Latin-1 mode) and bounds the size of the
// program that comes out; Go's own package regexp is nearly RE2, but newer and
// for whole characters. An Envoy refuses a whole route table for one expression
// that it does not take.
package re2

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// EnvoyProgram is the size of a program, in RE2's instructions, that an Envoy
// takes when it was started with our bootstrap. Envoy's own bound is 100;
// [a-z0-9-]{1,63} alone is over 200.
const EnvoyProgram = 10_000

// MaxProgram is the size taken here. It is counted on Go's reading of the
// expression, which joins alternatives that RE2 keeps apart, so it leaves room.
const MaxProgram = EnvoyProgram / 2

// maxLength bounds the work of reading an expression. Every character that
// means something is an instruction at least, but for those of a class.
const maxLength = 4 * EnvoyProgram

// Check is nil for an expression that every Envoy takes. It parses the expression
// at most once, and only if a scan finds no more classes and ranges of Unicode than
// the bounds of this package allow: a class such as \pL has hundreds of ranges for
// three bytes of text.
func Check(expr string) error {
	_, err := parse(expr)
	return err
}

// MatchesEmpty reports whether the empty text is all that an expression needs. An
// expression that Check refuses is an error.
func MatchesEmpty(expr string) (bool, error) {
	parsed, err := parse(expr)
	return err == nil && matchesEmpty(parsed), err
}

// Groups is how many groups of an expression a substitution can refer to. An
// expression that Check refuses is an error.
func Groups(expr string) (int, error) {
	parsed, err := parse(expr)
	if err != nil {
		return 0, err
	}
	return parsed.MaxCap(), nil
}

// parse reads an expression as Envoy does, byte by byte.
func parse(expr string) (*syntax.Regexp, error) {
	if len(expr) > maxLength {
		return nil, fmt.Errorf("longer than %d bytes, the most allowed", maxLength)
	}
	if !utf8.ValidString(expr) {
		return nil, errors.New("invalid UTF-8")
	}
	if err := checkEscapes(expr); err != nil {
		return nil, err
	}
	if err := checkRanges(expr); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(bytewise(expr), syntax.Perl)
	if err != nil {
		return nil, parseError(err)
	}
	if size := programSize(parsed); size > MaxProgram {
		return nil, fmt.Errorf("too large: Envoy would make a program of about %d instructions of it, the most allowed are %d", size, MaxProgram)
	}
	return parsed, nil
}

// parseError names the part of the expression that is wrong, unless that part ends
// within a character.
func parseError(err error) error {
	of, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return err
	}
	if part := whole(of.Expr); part != "" && utf8.ValidString(part) {
		return fmt.Errorf("%s: `%s`", of.Code, part)
	}
	return errors.New(of.Code.String())
}

// bytewise is the expression as Envoy reads it: each byte a character.
func bytewise(expr string) string {
	var out strings.Builder
	for i := range len(expr) {
		out.WriteRune(rune(expr[i]))
	}
	return out.String()
}

// whole undoes bytewise.
func whole(bytewise string) string {
	out := make([]byte, 0, len(bytewise))
	for _, r := range bytewise {
		out = append(out, byte(r))
	}
	return string(out)
}
