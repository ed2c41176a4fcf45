package evaluator

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

func (r *v3Reader) match(at string, m *routev3.RouteMatch, out *Route) {
	r.only(at, m, "prefix", "path", "safe_regex", "case_sensitive", "headers", "query_parameters")
	out.Path.IgnoreCase = m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	switch path := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		out.Path.Kind, out.Path.Text = Prefix, path.Prefix
	case *routev3.RouteMatch_Path:
		out.Path.Kind, out.Path.Text = Exact, path.Path
	case *routev3.RouteMatch_SafeRegex:
		r.only(at, path.SafeRegex, "regex")
		out.Path.Kind, out.Path.Regex = Regex, r.regex(at, path.SafeRegex.GetRegex())
	}
	for _, h := range m.GetHeaders() {
		r.only(at, h, "name", "present_match", "string_match", "invert_match", "treat_missing_header_as_empty")
		out.Headers = append(out.Headers, HeaderMatch{
			Name: h.GetName(), ValueMatch: r.value(at, h.GetPresentMatch(), h.GetStringMatch()),
			Not: h.GetInvertMatch(), MissingAsEmpty: h.GetTreatMissingHeaderAsEmpty(),
		})
	}
	for _, q := range m.GetQueryParameters() {
		r.only(at, q, "name", "present_match", "string_match")
		out.Query = append(out.Query, QueryMatch{q.GetName(), r.value(at, q.GetPresentMatch(), q.GetStringMatch())})
	}
}

func (r *v3Reader) value(at string, present bool, m *matcherv3.StringMatcher) ValueMatch {
	if present {
		return ValueMatch{Any: true}
	}
	r.only(at, m, "exact", "prefix", "safe_regex")
	if re := m.GetSafeRegex(); re != nil {
		r.only(at, re, "regex")
		return ValueMatch{Regex: r.regex(at, re.GetRegex())}
	}
	return ValueMatch{Exact: m.GetExact(), Prefix: m.GetPrefix()}
}
