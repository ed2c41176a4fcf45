package re2

import (
	"regexp/syntax"
	"unicode"
)

// fixedSize is the size that every program has: the search for a beginning, the
// match and the failure.
const fixedSize = 5

// loop is the most that an unbounded repetition adds.
const loop = 4

// programSize estimates the number of instructions that RE2 makes of an expression.
// It is more often too large than too small.
func programSize(re *syntax.Regexp) int { return fixedSize + instructions(re) }

func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCharClass:
		return ranges(re.Rune)
	case syntax.OpAnyCharNotNL:
		return 2
	case syntax.OpCapture:
		return n + 2
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpStar, syntax.OpPlus:
		return n + loop
	case syntax.OpRepeat:
		return repeated(n, re.Min, re.Max)
	default:
		return n + 1
	}
}

// literal counts instructions. A letter that is compared without case may be two
// bytes.
func literal(re *syntax.Regexp) int {
	if re.Flags&syntax.FoldCase != 0 {
		return 2 * len(re.Rune)
	}
	return len(re.Rune)
}

// ranges counts the ranges that a byte can be in.
func ranges(bounds []rune) int {
	n := 0
	for i := 0; i < len(bounds); i += 2 {
		if bounds[i] <= unicode.MaxLatin1 {
			n++
		}
	}
	return max(n, 1)
}

// repeated writes out every repetition, each optional one with a branch. Go limits
// nested repetitions, so this does not overflow.
func repeated(n, least, most int) int {
	if most < 0 {
		return max(least, 1)*n + loop
	}
	return most*n + most - least
}
