package v3

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

func routeMatch(m ir.Match) *routev3.RouteMatch {
	out := &routev3.RouteMatch{}
	switch {
	case m.Path != "":
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: m.Path}
	case m.Regex != "":
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: regex(m.Regex)}
	case m.Prefix != "":
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: m.Prefix}
	default:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: "/"}
	}
	if m.IgnoreCase {
		out.CaseSensitive = wrapperspb.Bool(false)
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, headerMatcher(h))
	}
	for _, q := range m.Query {
		out.QueryParameters = append(out.QueryParameters, queryMatcher(q))
	}
	return out
}

func headerMatcher(h ir.HeaderMatch) *routev3.HeaderMatcher {
	// An absent header has no value to match, and Envoy would not invert that
	// result.
	out := &routev3.HeaderMatcher{Name: h.Name, InvertMatch: h.Not, TreatMissingHeaderAsEmpty: h.Not && !h.Present}
	if h.Present {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
		return out
	}
	value := exactlyOrRegex(h.Exact, h.Regex)
	if h.Prefix != "" {
		value.MatchPattern = &matcherv3.StringMatcher_Prefix{Prefix: h.Prefix}
	}
	out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: value}
	return out
}

func queryMatcher(q ir.QueryMatch) *routev3.QueryParameterMatcher {
	out := &routev3.QueryParameterMatcher{Name: q.Name}
	if q.Present {
		out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
		return out
	}
	out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: exactlyOrRegex(q.Exact, q.Regex)}
	return out
}

func exactlyOrRegex(exact, re string) *matcherv3.StringMatcher {
	if re == "" {
		return exactly(exact)
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(re)}}
}

func exactly(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
}

func regex(re string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: re} }
