// Package re2 checks which regular expressions a current Envoy accepts. Envoy gives
// them to RE2 byte by byte (its Latin-1 mode) and limits the size of the compiled
// program. Go's package regexp is nearly RE2, but is newer and reads characters. An
// Envoy rejects a whole route table for one expression that it does not accept.
package re2

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// EnvoyProgram is the maximum size of a program, in RE2's instructions, for an
// Envoy that was started with our bootstrap. Envoy's default is 100;
// [a-z0-9-]{1,63} alone is over 200.
const EnvoyProgram = 10_000

// MaxProgram is the maximum size accepted here. It is counted on Go's parse of the
// expression, which joins alternatives that RE2 keeps apart, so it leaves room.
const MaxProgram = EnvoyProgram / 2

// maxLength limits the work of parsing an expression, in bytes. Every significant
// character is at least one instruction, except those of a class.
const maxLength = 4 * EnvoyProgram

// Check returns nil for an expression that every Envoy accepts. It parses the
// expression at most once, and only if a scan finds no more Unicode classes and
// ranges than this package allows: a class such as \pL has hundreds of ranges for
// three bytes of text.
func Check(expr string) error {
	_, err := parse(expr)
	return err
}

// MatchesEmpty reports whether an expression matches the empty text. It returns an
// error for an expression that Check rejects.
func MatchesEmpty(expr string) (bool, error) {
	parsed, err := parse(expr)
	return err == nil && matchesEmpty(parsed), err
}

// Groups returns how many groups of an expression a substitution can refer to. It
// returns an error for an expression that Check rejects.
func Groups(expr string) (int, error) {
	parsed, err := parse(expr)
	if err != nil {
		return 0, err
	}
	return parsed.MaxCap(), nil
}

// parse parses an expression as Envoy does, byte by byte.
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

// bytewise returns the expression as Envoy reads it, with each byte as one
// character.
func bytewise(expr string) string {
	var out strings.Builder
	for i := range len(expr) {
		out.WriteRune(rune(expr[i]))
	}
	return out.String()
}

// whole reverses bytewise.
func whole(bytewise string) string {
	out := make([]byte, 0, len(bytewise))
	for _, r := range bytewise {
		out = append(out, byte(r))
	}
	return string(out)
}
