package schema

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// neverFits warns of conditions that no request meets in the resulting routes. A
// route that is meant to reject requests by such a condition lets all of them
// through.
func (p *problems) neverFits(field string, m *networking.HTTPMatchRequest) {
	p.never(field+".uri", m.Uri, pathNeverIs)
	p.never(field+".scheme", m.Scheme, schemeNeverIs)
	p.never(field+".method", m.Method, methodNeverIs)
	p.never(field+".authority", m.Authority, valueNeverIs)
	p.neverOf(field+".headers", m.Headers, valueNeverIs)
	p.neverOf(field+".withoutHeaders", m.WithoutHeaders, valueNeverIs)
	p.neverOf(field+".queryParams", m.QueryParams, parameterNeverIs)
	for _, name := range slices.Sorted(maps.Keys(m.QueryParams)) {
		if why := parameterNeverIs(name, false); why != "" {
			p.warnOf(diag.NeverMatches, keyField(field+".queryParams", name), neverFulfilled+why)
		}
	}
}

const neverFulfilled = "is never fulfilled: "

// never calls why with a text, and whether it is only a prefix, and warns if no
// request can have it.
func (p *problems) never(field string, m *networking.StringMatch, why func(text string, part bool) string) {
	var name, text string
	switch kind := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		name, text = ".exact", kind.Exact
	case *networking.StringMatch_Prefix:
		name, text = ".prefix", kind.Prefix
	}
	if text == "" {
		return
	}
	if reason := why(text, name == ".prefix"); reason != "" {
		p.warnOf(diag.NeverMatches, field+name, neverFulfilled+reason)
	}
}

func (p *problems) neverOf(field string, conditions map[string]*networking.StringMatch, why func(string, bool) string) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		p.never(keyField(field, name), conditions[name], why)
	}
}

func schemeNeverIs(scheme string, part bool) string {
	for _, known := range []string{"http", "https"} {
		if scheme == known || part && strings.HasPrefix(known, scheme) {
			return ""
		}
	}
	return "a scheme is http or https, in lower case"
}

// methodNeverIs recognizes standard methods in lower case. Other methods may be
// custom.
func methodNeverIs(method string, _ bool) string {
	switch upper := strings.ToUpper(method); {
	case !headerToken.MatchString(method):
		return "no method has such characters"
	case upper != method && slices.Contains(methods, upper):
		return "methods are distinguished by case; use " + upper
	}
	return ""
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

func valueNeverIs(value string, part bool) string {
	const space = " \t"
	if strings.TrimLeft(value, space) != value || !part && strings.TrimRight(value, space) != value {
		return "proxies remove spaces around the value of a header"
	}
	return ""
}

// parameterNeverIs compares parameters as they stand in the URL.
func parameterNeverIs(text string, _ bool) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '&' || r == '#' }) {
		return "parameters are compared as they stand in the URL, where a space, &, # and characters beyond ASCII are escaped, such as %20"
	}
	return ""
}
