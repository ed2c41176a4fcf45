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

// Check is nil for an expression that every Envoy takes. It costs no more than
// reading the expression, whatever is repeated in it.
func Check(expr string) error {
	if len(expr) > maxLength {
		return fmt.Errorf("longer than %d bytes, the most allowed", maxLength)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return parseError(err)
	}
	if err := checkEscapes(expr); err != nil {
		return err
	}
	if as := bytewise(expr); as != expr {
		if parsed, err = syntax.Parse(as, syntax.Perl); err != nil {
			return parseError(err)
		}
	}
	if size := programSize(parsed); size > MaxProgram {
		return fmt.Errorf("too large: Envoy would make a program of about %d instructions of it, the most allowed are %d", size, MaxProgram)
	}
	return nil
}

func parseError(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

// bytewise is the expression as Envoy reads it: each byte a character.
func bytewise(expr string) string {
	var out strings.Builder
	for i := range len(expr) {
		out.WriteRune(rune(expr[i]))
	}
	return out.String()
}
