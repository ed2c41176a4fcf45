package schema

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// covers reports whether every request that meets condition b meets condition a too.
// It compares texts only, so it returns false for some that do.
func covers(a, b *networking.HTTPMatchRequest) bool {
	return coversURI(a, b) &&
		coversText(a.Scheme, b.Scheme) && coversText(a.Method, b.Method) && coversText(a.Authority, b.Authority) &&
		coversTexts(a.Headers, b.Headers) && coversTexts(a.QueryParams, b.QueryParams) && sameTexts(a.WithoutHeaders, b.WithoutHeaders) &&
		(a.Port == 0 || a.Port == b.Port) &&
		(a.SourceNamespace == "" || a.SourceNamespace == b.SourceNamespace) && hasLabels(b.SourceLabels, a.SourceLabels) &&
		coversGateways(a.Gateways, b.Gateways)
}

// coversURI compares the conditions on the path. One that ignores case covers one
// that does not.
func coversURI(a, b *networking.HTTPMatchRequest) bool {
	outer, inner := a.Uri, b.Uri
	if anyPath(outer) {
		return true
	}
	if a.IgnoreUriCase {
		outer, inner = lower(outer), lower(inner)
	} else if b.IgnoreUriCase {
		return false
	}
	return coversText(outer, inner)
}

// anyPath reports whether every path meets a condition.
func anyPath(m *networking.StringMatch) bool {
	return m == nil || m.GetPrefix() == "/" || m.GetRegex() == ".*"
}

// lower returns the condition with its literal texts in lower case.
func lower(m *networking.StringMatch) *networking.StringMatch {
	switch m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: strings.ToLower(m.GetExact())}}
	case *networking.StringMatch_Prefix:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: strings.ToLower(m.GetPrefix())}}
	}
	return m
}

// coversText reports whether every value that meets b meets a. A nil a covers all.
func coversText(a, b *networking.StringMatch) bool {
	if a == nil {
		return true
	}
	switch outer := a.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		inner, same := b.GetMatchType().(*networking.StringMatch_Exact)
		return same && inner.Exact == outer.Exact
	case *networking.StringMatch_Regex:
		inner, same := b.GetMatchType().(*networking.StringMatch_Regex)
		return same && inner.Regex == outer.Regex
	case *networking.StringMatch_Prefix:
		switch inner := b.GetMatchType().(type) {
		case *networking.StringMatch_Exact:
			return strings.HasPrefix(inner.Exact, outer.Prefix)
		case *networking.StringMatch_Prefix:
			return strings.HasPrefix(inner.Prefix, outer.Prefix)
		}
		return false
	}
	return b != nil && b.GetMatchType() != nil // {} accepts any value that is there.
}

// coversTexts reports whether b asks at least for what a asks.
func coversTexts(a, b map[string]*networking.StringMatch) bool {
	for name, outer := range a {
		if inner, asked := b[name]; !asked || !coversText(outer, inner) {
			return false
		}
	}
	return true
}

// sameTexts reports whether b has all conditions of a.
func sameTexts(a, b map[string]*networking.StringMatch) bool {
	for name, outer := range a {
		if inner, asked := b[name]; !asked || !proto.Equal(outer, inner) {
			return false
		}
	}
	return true
}

func hasLabels(all, some map[string]string) bool {
	for name, value := range some {
		if got, has := all[name]; !has || got != value {
			return false
		}
	}
	return true
}

// coversGateways reports whether a has all gateways of b. No gateways are all of the
// VirtualService.
func coversGateways(a, b []string) bool {
	missing := func(name string) bool { return !slices.Contains(a, name) }
	return len(a) == 0 || len(b) > 0 && !slices.ContainsFunc(b, missing)
}
