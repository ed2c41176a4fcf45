package compile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// Actions of a RouteRule on a request, field by field.

func timeout(t *schema.HTTPTimeout) time.Duration {
	if t == nil || t.SimpleTimeout == nil {
		return 0
	}
	return t.SimpleTimeout.Timeout.Duration
}

func rewrite(r *schema.HTTPRewrite) *ir.Rewrite {
	if r == nil {
		return nil
	}
	return &ir.Rewrite{Host: r.Authority, Path: r.URI}
}

func retry(r *schema.HTTPRetry) *ir.Retry {
	if r == nil || r.SimpleRetry == nil || r.SimpleRetry.Attempts <= 0 {
		return nil
	}
	return &ir.Retry{
		Attempts:      int(r.SimpleRetry.Attempts),
		PerTryTimeout: r.SimpleRetry.PerTryTimeout.Duration,
	}
}

// perMillion converts a percentage to millionths, rounded.
func perMillion(percent float64) int { return min(ir.Million, int(math.Round(percent*ir.Million/100))) }

func fault(f *schema.HTTPFaultInjection) *ir.Fault {
	if f == nil {
		return nil
	}
	var out ir.Fault
	if d := f.Delay; d != nil && perMillion(d.Percent) > 0 {
		out.Delay, out.DelayPerMillion = d.FixedDelay.Duration, perMillion(d.Percent)
	}
	if a := f.Abort; a != nil && perMillion(a.Percent) > 0 && a.HTTPStatus > 0 {
		out.AbortStatus, out.AbortPerMillion = int(a.HTTPStatus), perMillion(a.Percent)
	}
	if out == (ir.Fault{}) {
		return nil
	}
	return &out
}

// checkFault reports faults that are configured and never injected.
func (rp *reporter) checkFault(rule *routeRule, f *schema.HTTPFaultInjection) {
	if f == nil {
		return
	}
	if f.Delay != nil {
		rp.checkPercent(rule, "delay", f.Delay.Percent)
	}
	if f.Abort != nil {
		rp.checkPercent(rule, "abort", f.Abort.Percent)
	}
}

func (rp *reporter) checkPercent(rule *routeRule, part string, percent float64) {
	if percent == 0 || perMillion(percent) > 0 {
		return // Validation of the object reports 0.
	}
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.NoEffect, Object: rule.ref,
		Field: "spec.httpFault." + part + ".percent", Value: fmt.Sprint(percent),
		Message: "no " + part + " is injected: it is less than one in a million requests",
	})
}

func cors(c *schema.CorsPolicy) *ir.CORS {
	if c == nil {
		return nil
	}
	out := &ir.CORS{
		AllowOrigins:     exactOrigins(c.AllowOrigin),
		AllowMethods:     c.AllowMethods,
		AllowHeaders:     c.AllowHeaders,
		ExposeHeaders:    c.ExposeHeaders,
		AllowCredentials: c.AllowCredentials,
	}
	if c.MaxAge != nil {
		out.MaxAge = c.MaxAge.Duration
	}
	return out
}

func exactOrigins(origins []string) []ir.OriginMatch {
	var out []ir.OriginMatch
	for _, origin := range origins {
		if origin != "" { // No browser sends such an origin.
			out = append(out, ir.OriginMatch{Exact: origin})
		}
	}
	return out
}

// sortedHeaders returns headers by name, without the host; see setHost.
func sortedHeaders(headers map[string]string) []ir.Header {
	var out []ir.Header
	for _, name := range sortedNames(headers) {
		if !isHost(name) {
			out = append(out, ir.Header{Name: name, Value: headers[name]})
		}
	}
	return out
}

// sortedNames returns the sorted keys of a map, which is usually empty.
func sortedNames(values map[string]string) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(values))
}
