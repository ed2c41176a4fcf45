package yardstick

import (
	"cmp"
	"slices"
)

// Pair is the results of the server and of the yardstick, measured in succession.
type Pair struct{ Ours, Yardstick float64 }

// Ratio returns the quotient. It is above 1 if the server reached more.
func (p Pair) Ratio() float64 { return p.Ours / p.Yardstick }

// Pairs are sorted by ratio.
type Pairs []Pair

// Compare measures n pairs, after one that does not count.
func Compare(n int, ours, yardstick func() (float64, error)) (Pairs, error) {
	var pairs Pairs
	for range n + 1 {
		var p Pair
		var err error
		if p.Yardstick, err = yardstick(); err != nil {
			return nil, err
		}
		if p.Ours, err = ours(); err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	pairs = pairs[1:]
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
	return pairs, nil
}

// Least returns the pair with the lowest ratio.
func (p Pairs) Least() Pair { return p[0] }

// Median returns the pair in the middle.
func (p Pairs) Median() Pair { return p[len(p)/2] }
