package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (p *problems) httpMatch(field string, m *networking.HTTPMatchRequest, forSidecars bool) {
	p.regexMatch(field+".uri", m.Uri)
	p.textMatch(field+".scheme", m.Scheme)
	p.textMatch(field+".method", m.Method)
	p.textMatch(field+".authority", m.Authority)
	p.textMatches(field+".headers", m.Headers)
	p.textMatches(field+".withoutHeaders", m.WithoutHeaders)
	p.textMatches(field+".queryParams", m.QueryParams)
	for _, name := range []string{"authority", "method", "scheme", "uri"} {
		if _, given := m.Headers[name]; given {
			p.suspect(keyField(field+".headers", name), fmt.Sprintf("is a condition on a header of that name, which hardly any request has; for the %s of the request use match.%s", name, name))
		}
	}
	p.neverFits(field, m)
	if m.IgnoreUriCase && m.GetUri().GetRegex() != "" {
		p.warn(field+".ignoreUriCase", "has no effect on a regex; begin it with (?i)")
	}
	if forSidecars {
		p.noClaims(field+".headers", m.Headers)
		p.noClaims(field+".withoutHeaders", m.WithoutHeaders)
	}
}

func (p *problems) noClaims(field string, conditions map[string]*networking.StringMatch) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if strings.HasPrefix(name, claimPrefix) {
			p.forbidden(keyField(field, name), "cannot be a condition for sidecars: claims are known at gateways only; name gateways other than mesh")
		}
	}
}

func (p *problems) textMatches(field string, conditions map[string]*networking.StringMatch) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		p.textMatch(keyField(field, name), conditions[name])
	}
}

// textMatch is for all texts except the path, whose prefix may be empty.
func (p *problems) textMatch(field string, m *networking.StringMatch) {
	if kind, ok := m.GetMatchType().(*networking.StringMatch_Prefix); ok && kind.Prefix == "" {
		p.invalid(field+".prefix", "must not be empty: leave the condition empty ({}) to ask for presence")
	}
	p.regexMatch(field, m)
}

func (p *problems) regexMatch(field string, m *networking.StringMatch) {
	kind, ok := m.GetMatchType().(*networking.StringMatch_Regex)
	if !ok {
		return
	}
	if kind.Regex == "" {
		p.invalid(field+".regex", "must not be empty: such an expression matches only the empty text")
	}
	p.regexSize(field+".regex", kind.Regex)
}

// regexSize applies Istio's limit on expressions that Envoy must compile. The JSON
// Schema limits the characters earlier, before the expression is read.
func (p *problems) regexSize(field, regex string) {
	const most = 1024
	if len(regex) > most {
		p.invalidValue(field, regex, fmt.Sprintf("must have at most %d bytes", most))
	}
}
