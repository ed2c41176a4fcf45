package compile

import "slices"

// percentages divide 100 like the weights, by largest remainder; nil when
// there is nothing to divide by. A single weight may be unset.
func percentages(weights []int32) []int {
	if len(weights) == 1 {
		return []int{100}
	}
	sum := 0
	for _, w := range weights {
		sum += int(max(0, w))
	}
	if sum == 0 {
		return nil
	}
	out, order, left := make([]int, len(weights)), make([]int, len(weights)), 100
	for i, w := range weights {
		out[i], order[i] = int(max(0, w))*100/sum, i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(max(0, weights[b]))*100%sum - int(max(0, weights[a]))*100%sum
	})
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}
