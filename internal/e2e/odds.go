package e2e

import "math"

// doubt is the chance, for each side of a bound, that it refuses a correct result. The
// demo has about ten bounds, so one run in a hundred thousand fails by chance.
const doubt = 5e-7

// bounds returns the least and greatest plausible count of n independent trials with
// chance p each: the quantiles of the exact binomial distribution at doubt and 1 - doubt.
// A round-robin balancer stays well inside.
func bounds(n int, p float64) (lo, hi int) {
	lo, hi = 0, n
	for tail := chance(n, lo, p); tail < doubt; tail += chance(n, lo, p) {
		lo++
	}
	for tail := chance(n, hi, p); tail < doubt; tail += chance(n, hi, p) {
		hi--
	}
	return lo, hi
}

// chance returns the binomial probability of exactly k. It uses logarithms, because the
// coefficients for n = 200 exceed float64.
func chance(n, k int, p float64) float64 {
	lchoose := lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1)
	return math.Exp(lchoose + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func lgamma(x int) float64 {
	v, _ := math.Lgamma(float64(x))
	return v
}
