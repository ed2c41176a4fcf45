package compile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// readMatches reads the matches of the route.
func (p *plan) readMatches(ref diag.Ref, r *httpRoute) {
	if len(r.spec.GetMatch()) == 0 {
		r.matches = []routeMatch{{}}
		return
	}
	for i, m := range r.spec.GetMatch() {
		if uri, exact := m.GetUri().GetMatchType().(*networking.StringMatch_Exact); exact && uri.Exact == "" {
			p.notHonoured(diag.NeverMatches, ref, fmt.Sprintf("%s.match[%d].uri.exact", r.field, i), "no request matches: a path begins with a slash")
			continue
		}
		asked := expressible(m)
		p.checkMatch(ref, fmt.Sprintf("%s.match[%d]", r.field, i), m)
		known := p.knows(r.virtual.declared, fmt.Sprintf("%s.match[%d]", r.field, i))
		closed := asked != m || !known
		r.matches = append(r.matches, routeMatch{
			name:        m.GetName(),
			statPrefix:  m.GetStatPrefix(),
			match:       virtualMatch(asked),
			closed:      closed,
			source:      ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
			sidecarOnly: p.pilot().EdgeMatchesLost && !closed,
			port:        m.GetPort(),
			gateways:    r.virtual.gatewaysNamed(m.GetGateways()),
		})
	}
}

// expressible returns the match without the conditions that Envoy cannot check, or
// m itself if it can check all.
func expressible(m *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := &networking.HTTPMatchRequest{
		Uri: askable(m.GetUri()), Scheme: askable(m.GetScheme()), Method: askable(m.GetMethod()), Authority: askable(m.GetAuthority()),
		IgnoreUriCase: m.GetIgnoreUriCase(),
	}
	out.Headers = askableOf(m.GetHeaders(), func(name string, _ *networking.StringMatch) bool { return !schema.IsClaim(name) })
	out.WithoutHeaders = askableOf(m.GetWithoutHeaders(), func(name string, c *networking.StringMatch) bool {
		return !schema.IsClaim(name) && !schema.FitsEmpty(c)
	})
	out.QueryParams = askableOf(m.GetQueryParams(), func(string, *networking.StringMatch) bool { return true })
	if out.Uri == m.Uri && out.Scheme == m.Scheme && out.Method == m.Method && out.Authority == m.Authority &&
		len(out.Headers) == len(m.Headers) && len(out.WithoutHeaders) == len(m.WithoutHeaders) && len(out.QueryParams) == len(m.QueryParams) {
		return m
	}
	return out
}

// askable returns nil for a condition with an expression that Envoy cannot parse.
func askable(m *networking.StringMatch) *networking.StringMatch {
	if badExpression(m) {
		return nil
	}
	return m
}

func askableOf(all map[string]*networking.StringMatch, can func(string, *networking.StringMatch) bool) map[string]*networking.StringMatch {
	out := map[string]*networking.StringMatch{}
	for name, m := range all {
		if can(name, m) && !badExpression(m) {
			out[name] = m
		}
	}
	return out
}

func badExpression(m *networking.StringMatch) bool {
	return m.GetRegex() != "" && validRegex(m.GetRegex()) != nil
}

// checkMatch reports expressions that were stored without validation.
func (rp *reporter) checkMatch(ref diag.Ref, at string, m *networking.HTTPMatchRequest) {
	const closed = "requests that meet the other conditions are answered with 503: "
	for name, expression := range expressions(m) {
		if err := validRegex(expression); err != nil {
			rp.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.FieldInvalid, Code: diag.Closed, Object: ref, Field: at + "." + name,
				Value: fmt.Sprintf("%q", expression), Message: fmt.Sprintf(closed+"the expression is %v", err),
			})
		}
	}
}

// expressions returns the regular expressions of a match in the order of their
// fields.
func expressions(m *networking.HTTPMatchRequest) func(yield func(field, expression string) bool) {
	type condition struct {
		field string
		*networking.StringMatch
	}
	all := []condition{{"uri", m.GetUri()}, {"scheme", m.GetScheme()}, {"method", m.GetMethod()}, {"authority", m.GetAuthority()}}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		all = append(all, condition{"headers[" + name + "]", m.GetHeaders()[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		all = append(all, condition{"withoutHeaders[" + name + "]", m.GetWithoutHeaders()[name]})
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

// virtualMatch returns headers by name, followed by the parts of the request line,
// as in Pilot.
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
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		without := virtualHeader(name, m.GetWithoutHeaders()[name])
		if without.Regex == schema.AnyText {
			without.Regex, without.Present = "", true
		}
		without.Not = true
		out.Headers = append(out.Headers, without)
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
	return asSeen(out)
}

// asSeen returns a condition on the host of a request as the proxy sees it: without
// a final dot.
func asSeen(m ir.HeaderMatch) ir.HeaderMatch {
	if m.Name == ":authority" && m.Exact != "" {
		m.Exact = ir.WithoutFinalDot(m.Exact)
	}
	return m
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
