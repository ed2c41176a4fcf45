package meshgen

import (
	"regexp/syntax"
	"strings"
)

// example returns a text that the whole expression matches. It ignores anchors within.
func example(expression string) string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return expression
	}
	return sample(re)
}

func sample(re *syntax.Regexp) string {
	var out strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(printable(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "z"
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpPlus:
		return sample(re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			out.WriteString(sample(re.Sub[0]))
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			out.WriteString(sample(sub))
		}
	}
	return out.String()
}

// printable returns a character of the class that may be in a header. The class is given
// as pairs of bounds.
func printable(class []rune) rune {
	for i := 0; i < len(class); i += 2 {
		if first := max(class[i], '!'); first <= class[i+1] {
			return first
		}
	}
	return class[0]
}
