package compile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// readMatches tells whether there is a way to come to the route: no match at
// all, or one that can be followed whole.
func (p *plan) readMatches(ref diag.Ref, r *httpRoute) bool {
	if len(r.spec.GetMatch()) == 0 {
		r.matches = []routeMatch{{}}
		return true
	}
	for i, m := range r.spec.GetMatch() {
		at := fmt.Sprintf("%s.match[%d]", r.field, i)
		if !p.checkMatch(ref, at, m) {
			continue
		}
		r.matches = append(r.matches, routeMatch{
			match:    virtualMatch(m),
			source:   ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
			noEdge:   p.pilot().EdgeMatchesLost,
			port:     m.GetPort(),
			gateways: m.GetGateways(),
		})
	}
	return len(r.matches) > 0
}

// checkMatch reports a match that must not be used: without the condition
// that cannot be followed it would take too much.
func (p *plan) checkMatch(ref diag.Ref, at string, m *networking.HTTPMatchRequest) bool {
	usable := true
	if len(m.GetWithoutHeaders()) > 0 {
		p.notHonoured(ref, at+".withoutHeaders", "the match is left out: Envoys of the v1 API cannot ask for a header to be absent")
		usable = false
	}
	if m.GetStatPrefix() != "" {
		p.notHonoured(ref, at+".statPrefix", "routes have no statistics of their own")
	}
	for name, expression := range expressions(m) {
		if err := validRegex(expression); err != nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.FieldInvalid, Object: ref, Field: at + "." + name,
				Value: fmt.Sprintf("%q", expression), Message: fmt.Sprintf("the match is left out, its expression is %v", err),
			})
			usable = false
		}
	}
	return usable
}

// expressions of a match in the order of their fields.
func expressions(m *networking.HTTPMatchRequest) func(yield func(field, expression string) bool) {
	type condition struct {
		field string
		*networking.StringMatch
	}
	all := []condition{{"uri", m.GetUri()}, {"scheme", m.GetScheme()}, {"method", m.GetMethod()}, {"authority", m.GetAuthority()}}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		all = append(all, condition{"headers[" + name + "]", m.GetHeaders()[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		all = append(all, condition{"queryParams[" + name + "]", m.GetQueryParams()[name]})
	}
	return func(yield func(string, string) bool) {
		for _, c := range all {
			if c.GetRegex() != "" && !yield(c.field, c.GetRegex()) {
				return
			}
		}
	}
}

// virtualMatch has headers by name, then the parts of the request line, as
// Pilot.
func virtualMatch(m *networking.HTTPMatchRequest) ir.Match {
	out := ir.Match{
		Path:       m.GetUri().GetExact(),
		Prefix:     m.GetUri().GetPrefix(),
		Regex:      m.GetUri().GetRegex(),
		IgnoreCase: m.GetIgnoreUriCase() && (m.GetUri().GetExact() != "" || m.GetUri().GetPrefix() != ""),
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		out.Headers = append(out.Headers, virtualHeader(name, m.GetHeaders()[name]))
	}
	for _, part := range []struct {
		name  string
		match *networking.StringMatch
	}{{":method", m.GetMethod()}, {":authority", m.GetAuthority()}, {":scheme", m.GetScheme()}} {
		if part.match != nil {
			out.Headers = append(out.Headers, virtualHeader(part.name, part.match))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		out.Query = append(out.Query, virtualQuery(name, m.GetQueryParams()[name]))
	}
	return out
}

func virtualHeader(name string, m *networking.StringMatch) ir.HeaderMatch {
	out := ir.HeaderMatch{Name: name, Exact: m.GetExact(), Prefix: m.GetPrefix(), Regex: m.GetRegex()}
	_, exact := m.GetMatchType().(*networking.StringMatch_Exact)
	out.Present = !exact && out.Prefix == "" && out.Regex == ""
	return out
}

func virtualQuery(name string, m *networking.StringMatch) ir.QueryMatch {
	out := ir.QueryMatch{Name: name, Exact: m.GetExact(), Regex: m.GetRegex()}
	if prefix := m.GetPrefix(); prefix != "" {
		out.Regex = regexp.QuoteMeta(prefix) + ".*"
	}
	_, exact := m.GetMatchType().(*networking.StringMatch_Exact)
	out.Present = !exact && out.Regex == ""
	return out
}
