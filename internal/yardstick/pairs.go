package yardstick

import (
	"cmp"
	"slices"
)

// Pair is what ours and the yardstick reached one right after the other.
type Pair struct{ Ours, Yardstick float64 }

// Ratio is above 1 where ours is more.
func (p Pair) Ratio() float64 { return p.Ours / p.Yardstick }

// Pairs are sorted by ratio.
type Pairs []Pair

// Compare measures so many pairs, after one that does not count.
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

// Least is the pair that is worst for ours.
func (p Pairs) Least() Pair { return p[0] }

// Median is the one in the middle.
func (p Pairs) Median() Pair { return p[len(p)/2] }
