package v1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// retryConditions are the conditions that v1 Envoys know; they ignore all others. A
// condition on status codes has no effect without the codes.
var retryConditions = []string{
	"5xx", "gateway-error", "connect-failure", "retriable-4xx", "refused-stream",
	"cancelled", "deadline-exceeded", "resource-exhausted", "unavailable", "retriable-status-codes",
}

// lostRetries reports the settings of retries that v1 lacks.
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

// unknownRetries returns the conditions that cause no retry.
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
