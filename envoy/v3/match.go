package v3

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

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
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, headerMatcher(h))
	}
	return out
}

func headerMatcher(h ir.HeaderMatch) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: h.Name}
	if h.Present {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
		return out
	}
	value := exactly(h.Exact)
	switch {
	case h.Regex != "":
		value.MatchPattern = &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(h.Regex)}
	case h.Prefix != "":
		value.MatchPattern = &matcherv3.StringMatcher_Prefix{Prefix: h.Prefix}
	}
	out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: value}
	return out
}

func exactly(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
}

func regex(re string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: re} }
