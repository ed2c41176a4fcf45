package v1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// retryConditions are those that Envoys of the v1 API know; they pass over any
// other. One that is about status codes says nothing without them.
var retryConditions = []string{
	"5xx", "gateway-error", "connect-failure", "retriable-4xx", "refused-stream",
	"cancelled", "deadline-exceeded", "resource-exhausted", "unavailable", "retriable-status-codes",
}

// lostRetries is what v1 cannot say of when and where it tries again.
func lostRetries(r *ir.Route) diag.List {
	if r.Retry == nil || r.Retry.ByDefault {
		return nil
	}
	var out diag.List
	if r.Retry.BackOff > 0 {
		out = diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 tries again after 25 ms and more, not %v", r.Retry.BackOff)
	}
	if r.Retry.OtherLocalities {
		out = append(out, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 tries again in any locality, and does not go on to others")...)
	}
	return out
}

// unknownRetries are conditions on which nothing is tried again.
func unknownRetries(r *ir.Route) diag.List {
	if r.Retry == nil || r.Retry.ByDefault {
		return nil
	}
	var unknown []string
	for word := range strings.SplitSeq(r.Retry.On, ",") {
		if word != "" && !slices.Contains(retryConditions, word) {
			unknown = append(unknown, word)
		}
	}
	for _, code := range r.Retry.StatusCodes {
		unknown = append(unknown, fmt.Sprint(code))
	}
	if unknown == nil {
		return nil
	}
	return diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 does not try again on %s: it knows no such condition", strings.Join(unknown, ", "))
}
