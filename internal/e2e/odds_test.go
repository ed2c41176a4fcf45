package e2e

import (
	"math"
	"testing"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		n      int
		p      float64
		lo, hi int
	}{
		// The normal approximation has 100 ± 4.9·√50 and 50 ± 4.9·√37.5.
		{200, 0.5, 66, 134},
		{200, 0.25, 22, 82},
		// Few trials prove nothing.
		{10, 0.5, 0, 10},
	} {
		if lo, hi := bounds(c.n, c.p); lo != c.lo || hi != c.hi {
			t.Errorf("bounds(%d, %v) = %d, %d; want %d, %d", c.n, c.p, lo, hi, c.lo, c.hi)
		}
	}
}

func TestChancesSumToOne(t *testing.T) {
	for _, p := range []float64{0.25, 1.0 / 3, 0.5} {
		var sum float64
		for k := range 201 {
			sum += chance(200, k, p)
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("chances of 0..200 with p = %v sum to %v", p, sum)
		}
	}
}
