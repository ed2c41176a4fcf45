package v3

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// acceptable is the route as Envoy takes it: closed if it cannot act, nil if it
// may be left out.
func acceptable(r *ir.Route) (*routev3.Route, diag.List) {
	if path, _, ok := strings.Cut(r.Match.Prefix, "?"); ok {
		m := r.Match
		m.Path, m.Prefix = path, ""
		return closed(r, m, "it compares a prefix with the path without the query, found %q", r.Match.Prefix)
	}
	spelled, problems := route(r)
	if err := Check(spelled); err != nil {
		return closed(r, acceptableMatch(r.Match), "%v", err)
	}
	return spelled, problems
}

// closed answers 503 to what can be asked of the match.
func closed(r *ir.Route, m ir.Match, format string, args ...any) (*routev3.Route, diag.List) {
	if r.Optional {
		return nil, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v3 gets no such route: "+format, args...)
	}
	out, _ := route(r.Closed(m))
	return out, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v3 answers 503 in place of this route: "+format, args...)
}

// acceptableMatch leaves out the conditions that break a constraint.
func acceptableMatch(m ir.Match) ir.Match {
	out := ir.Match{Path: m.Path, Prefix: m.Prefix, Regex: m.Regex, IgnoreCase: m.IgnoreCase}
	if Check(routeMatch(out)) != nil {
		out = ir.Match{}
	}
	for _, h := range m.Headers {
		if Check(headerMatcher(h)) == nil {
			out.Headers = append(out.Headers, h)
		}
	}
	for _, q := range m.Query {
		if Check(queryMatcher(q)) == nil {
			out.Query = append(out.Query, q)
		}
	}
	return out
}
