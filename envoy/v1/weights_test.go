package v1

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/ir"
)

func TestPercentages(t *testing.T) {
	for _, test := range []struct {
		weights, want []int
		exact         bool
	}{
		{[]int{75, 25}, []int{75, 25}, true},
		{[]int{1, 3}, []int{25, 75}, true},
		{[]int{1, 999}, []int{1, 99}, false},
		{[]int{1, 1, 1}, []int{34, 33, 33}, false},
		{[]int{1, 1, 9998, 0}, []int{1, 1, 98, 0}, false},
		{[]int{0, 7}, []int{0, 100}, true},
	} {
		got, exact := percentages(weighted(test.weights))
		if !slices.Equal(got, test.want) || exact != test.exact {
			t.Errorf("%v: %v, exact %v; want %v, %v", test.weights, got, exact, test.want, test.exact)
		}
	}
}

func TestPercentagesAreFair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1<<28)), 2, 12).Draw(rt, "weights")
		if slices.Max(weights) == 0 {
			return
		}
		got, _ := percentages(weighted(weights))
		sum := 0
		for i, w := range weights {
			sum += got[i]
			if (got[i] > 0) != (w > 0) {
				rt.Errorf("%d of %v became %d", w, weights, got[i])
			}
		}
		if sum != totalWeight {
			rt.Errorf("%v sum to %d", got, sum)
		}
	})
}

func weighted(weights []int) []ir.WeightedCluster {
	out := make([]ir.WeightedCluster, len(weights))
	for i, w := range weights {
		out[i].Weight = w
	}
	return out
}
