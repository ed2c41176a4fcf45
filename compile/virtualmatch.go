package compile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// readMatches reads the ways to come to the route.
func (p *plan) readMatches(ref diag.Ref, r *httpRoute) {
	if len(r.spec.GetMatch()) == 0 {
		r.matches = []routeMatch{{}}
		return
	}
	for i, m := range r.spec.GetMatch() {
		if uri, exact := m.GetUri().GetMatchType().(*networking.StringMatch_Exact); exact && uri.Exact == "" {
			p.notHonoured(ref, fmt.Sprintf("%s.match[%d].uri.exact", r.field, i), "no request fits: a path begins with a slash")
			continue
		}
		asked := expressible(m)
		p.checkMatch(ref, fmt.Sprintf("%s.match[%d]", r.field, i), m)
		closed := asked != m
		r.matches = append(r.matches, routeMatch{
			match:    virtualMatch(asked),
			closed:   closed,
			source:   ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
			noEdge:   p.pilot().EdgeMatchesLost && !closed,
			port:     m.GetPort(),
			gateways: m.GetGateways(),
		})
	}
}

// expressible is the match without the conditions that no Envoy can ask; m
// itself when it can ask all of them.
func expressible(m *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := proto.CloneOf(m)
	maps.DeleteFunc(out.GetHeaders(), func(name string, c *networking.StringMatch) bool { return schema.IsClaim(name) || badExpression(c) })
	maps.DeleteFunc(out.GetWithoutHeaders(), func(name string, c *networking.StringMatch) bool {
		return schema.IsClaim(name) || badExpression(c) || schema.FitsEmpty(c)
	})
	maps.DeleteFunc(out.GetQueryParams(), func(_ string, c *networking.StringMatch) bool { return badExpression(c) })
	for _, part := range []**networking.StringMatch{&out.Uri, &out.Scheme, &out.Method, &out.Authority} {
		if badExpression(*part) {
			*part = nil
		}
	}
	if proto.Equal(out, m) {
		return m
	}
	return out
}

func badExpression(m *networking.StringMatch) bool {
	return m.GetRegex() != "" && validRegex(m.GetRegex()) != nil
}

// checkMatch reports expressions that were stored past validation.
func (p *plan) checkMatch(ref diag.Ref, at string, m *networking.HTTPMatchRequest) {
	const closed = "requests that fit the other conditions are answered with 503: "
	for name, expression := range expressions(m) {
		if err := validRegex(expression); err != nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.FieldInvalid, Object: ref, Field: at + "." + name,
				Value: fmt.Sprintf("%q", expression), Message: fmt.Sprintf(closed+"the expression is %v", err),
			})
		}
	}
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
