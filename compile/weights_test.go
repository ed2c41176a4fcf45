package compile

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPercentagesAreFair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int32Range(-5, 1_000_000), 2, 8).Draw(rt, "weights")
		got, sum, whole := percentages(weights), 0, 0.0
		for _, w := range weights {
			whole += float64(max(0, w))
		}
		if whole == 0 {
			if got != nil {
				rt.Fatalf("nothing was divided into %v", got)
			}
			return
		}
		for i, w := range weights {
			sum += got[i]
			if exact := float64(max(0, w)) * 100 / whole; float64(got[i]) <= exact-1 || float64(got[i]) >= exact+1 {
				rt.Errorf("%d of %v is %.2f %%, found %d", w, weights, exact, got[i])
			}
		}
		if sum != 100 {
			rt.Errorf("%v sum to %d", got, sum)
		}
	})
}
