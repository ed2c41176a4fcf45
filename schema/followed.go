package schema

import (
	"net/http"
	"regexp"
	"regexp/syntax"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// What can be followed of an object, for those who warn and those who compile.

// IsClaim tells a condition on the claim of a token from one on a header.
func IsClaim(header string) bool { return strings.HasPrefix(header, "@") }

// AnyText is an expression for whatever value, and so a question for presence.
const AnyText = ".*"

// FitsEmpty tells whether the empty value fulfils a condition that does not ask
// for presence alone. That a header is not so cannot be asked: Envoy does not
// tell the empty value from none.
func FitsEmpty(m *networking.StringMatch) bool {
	switch kind := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return kind.Exact == ""
	case *networking.StringMatch_Regex:
		re, err := regexp.Compile(`^(?:` + kind.Regex + `)$`)
		return kind.Regex != AnyText && (err != nil || re.MatchString(""))
	}
	return false
}

// Redirects tells whether a redirect leads elsewhere, with a status that Envoy
// has.
func Redirects(r *networking.HTTPRedirect) bool {
	switch r.GetRedirectCode() {
	case 0, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return false
	}
	return r.GetScheme() != "" || r.GetAuthority() != "" || r.GetPort() != 0 || r.GetUri() != "" || r.GetPrefixRewrite() != "" ||
		ToPortOfRequest(r)
}

// ToPortOfRequest tells whether a redirect goes to the port that was called.
// Without, it goes to that of the scheme.
func ToPortOfRequest(r *networking.HTTPRedirect) bool {
	return r.GetRedirectPort() != nil && r.GetPort() == 0 && r.GetDerivePort() == networking.HTTPRedirect_FROM_REQUEST_PORT
}

// Rewrites tells whether an expression, and what takes the place of its
// matches, are RE2's: a backslash stands before a group or another backslash.
func Rewrites(r *networking.RegexRewrite) bool {
	re, err := syntax.Parse(r.GetMatch(), syntax.Perl)
	if err != nil {
		return false
	}
	text := r.GetRewrite()
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i == len(text) || text[i] != '\\' && (text[i] < '0' || text[i] > '9' || int(text[i]-'0') > re.MaxCap()) {
			return false
		}
	}
	return true
}

// MirrorOf is where copies of all requests go, and the field that says so; nil
// when only some are to be copied, which no Envoy of v1 can.
func MirrorOf(r *networking.HTTPRoute) (*networking.Destination, string) {
	percentage := r.GetMirrorPercentage()
	mirror, field := r.GetMirror(), "mirror"
	if mirror == nil && len(r.GetMirrors()) > 0 {
		mirror, percentage, field = r.GetMirrors()[0].GetDestination(), r.GetMirrors()[0].GetPercentage(), "mirrors[0].destination"
	}
	//lint:ignore SA1019 Old objects have it.
	old := r.GetMirrorPercent()
	if percentage != nil && percentage.GetValue() < 100 || old != nil && old.GetValue() < 100 {
		return nil, field
	}
	return mirror, field
}
