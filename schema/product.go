package schema

import (
	"strconv"
	"strings"
)

// MaxProduct is the default limit on the parts that one object may multiply to. The
// mesh settings may change it (docs/decisions/033-budgets.md).
const MaxProduct = 100_000

// Factor is the length of a list, and the name of its entries.
type Factor struct {
	Length int
	Of     string
}

// Product is the product of lists that multiply with each other.
type Product []Factor

// endlessParts is the maximum of Parts, so that sums of many Products fit an int.
const endlessParts = 1 << 40

// Parts returns the number of entries that the lists multiply to. An empty Product
// has one. The result is at most 2^40.
func (p Product) Parts() int {
	parts := 1
	for _, f := range p {
		switch {
		case f.Length == 0:
			return 0
		case parts > endlessParts/f.Length:
			parts = endlessParts
		default:
			parts *= f.Length
		}
	}
	return parts
}

// String returns "256 hosts × 256 ports × 4,000 endpoints = 262,144,000 parts".
func (p Product) String() string {
	factors := make([]string, len(p))
	for i, f := range p {
		factors[i] = Thousands(f.Length) + " " + f.Of
	}
	parts := Thousands(p.Parts()) + " parts"
	if p.Parts() >= endlessParts {
		parts = "more than " + parts
	}
	return strings.Join(factors, " × ") + " = " + parts
}

// Thousands formats a number with separators: 262,144,000.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return sign + out.String()
}
