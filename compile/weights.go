package compile

import (
	"math"

	"github.com/pilot-api/pilot-api/ir"
)

// shares returns the weights as written, or nil if their sum is 0. A single weight
// may be unset. If the sum exceeds Envoy's limit, all weights are scaled down, but
// none becomes 0.
func shares(weights []int32) []int {
	if len(weights) == 1 {
		return []int{ir.WholeWeight}
	}
	out, sum := make([]int, len(weights)), 0
	for i, w := range weights {
		out[i] = int(max(0, w))
		sum += out[i]
	}
	if sum == 0 {
		return nil
	}
	if divisor := sum/(math.MaxUint32-len(weights)) + 1; divisor > 1 {
		for i, w := range out {
			out[i] = (w + divisor - 1) / divisor
		}
	}
	return out
}
