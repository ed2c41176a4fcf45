package compile

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSharesAreAsWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Int32Range(-5, 5), rapid.Int32(), rapid.Just[int32](math.MaxInt32)), 2, 8).Draw(rt, "weights")
		got, sum, whole := shares(weights), 0, 0.0
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
			if whole <= math.MaxInt32 && got[i] != int(max(0, w)) || (got[i] > 0) != (w > 0) {
				rt.Errorf("%v became %v", weights, got)
			}
		}
		if sum > math.MaxUint32 {
			rt.Errorf("%v sum to %d, which Envoy does not count to", got, sum)
		}
		for i, w := range weights {
			if want, found := float64(max(0, w))/whole, float64(got[i])/float64(sum); math.Abs(want-found) > 1e-6 {
				rt.Errorf("%d of %v is %.7f, found %.7f", w, weights, want, found)
			}
		}
	})
}
