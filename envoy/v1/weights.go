package v1

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// totalWeight is the required sum of the weights of a route.
const totalWeight = 100

// percentages divides 100 in proportion to the weights. exact reports whether the result
// has the same proportions. The rest after rounding down goes to the largest remainders.
// A share above 0 stays above 0 at the cost of the largest, unless there are too many.
func percentages(weighted []ir.WeightedCluster) (percent []int, exact bool) {
	sum, some := 0, 0
	for _, w := range weighted {
		sum += w.Weight
		some += min(w.Weight, 1)
	}
	percent, exact = make([]int, len(weighted)), true
	order, left := make([]int, len(weighted)), totalWeight
	remainder := func(i int) int { return weighted[i].Weight * totalWeight % sum }
	for i, w := range weighted {
		percent[i], order[i] = w.Weight*totalWeight/sum, i
		exact = exact && remainder(i) == 0
		if percent[i] == 0 && w.Weight > 0 && some <= totalWeight {
			percent[i] = 1
		}
		left -= percent[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder(b), remainder(a)) })
	for ; left > 0; left-- {
		percent[order[0]]++
		order = append(order[1:], order[0])
	}
	for ; left < 0; left++ {
		percent[slices.Index(percent, slices.Max(percent))]--
	}
	return percent, exact
}

// coarseWeights returns the Problem of a route whose weights v1 can only approximate.
func coarseWeights(r *ir.Route) diag.List {
	if len(r.Clusters) < 2 {
		return nil
	}
	percent, exact := percentages(r.Clusters)
	if exact {
		return nil
	}
	return diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 shares requests by whole percent: these weights become %v", percent)
}
