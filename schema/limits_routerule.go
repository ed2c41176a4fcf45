package schema

import "github.com/pilot-api/pilot-api/diag"

func routeRuleLimits(r *RouteRule) diag.List {
	var p problems
	if r.Match != nil && !r.Match.Followed() {
		p.warnOf(diag.Closed, "spec.match.tcp", closedMatch+"addresses are not looked at")
	}
	return p.list
}

// Followed reports whether the match has conditions only on the callers and heads
// of requests.
func (m *MatchCondition) Followed() bool { return m == nil || m.TCP == nil && m.UDP == nil }
