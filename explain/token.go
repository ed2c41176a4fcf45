package explain

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Token says which tokens of an issuer a listener accepts, and what becomes of that of the
// request.
type Token struct {
	Issuer    string     `json:"issuer"`
	Audiences []string   `json:"audiences,omitempty"`
	Places    []string   `json:"places"`
	Origins   []diag.Ref `json:"origins,omitempty"`
	// Effect is refused, or depends for a token whose signature and times decide. It is "" if the request
	// has no token of the issuer.
	Effect AccessEffect `json:"effect,omitempty"`
	// Why says why the token is refused, or what its effect depends on.
	Why string `json:"why,omitempty"`
}

// unverified is what a valid token depends on. This package has no keys of issuers to verify it, and no clock.
const unverified = "its signature and its times, which are not checked here"

// claims are those of the token of a request, as far as they are known.
type claims struct {
	payload map[string]any
	words   []string // claims that are lists of words
	unknown string   // says what the claims depend on; "" if payload has them
}

// foundToken is a token of a request at a place.
type foundToken struct {
	place ir.TokenPlace
	text  string
}

// verify explains the tokens of a request. It returns the request with their claims, and the
// answer of the proxy if one is refused for certain.
func (e *Explanation) verify(t *ir.Tokens, r Request) (Request, *Answer) {
	if t == nil {
		return r, nil
	}
	for i := range t.Rules {
		rule := &t.Rules[i]
		one := Token{Issuer: rule.Issuer, Audiences: rule.Audiences, Origins: rule.Origins}
		for _, place := range rule.Places() {
			one.Places = append(one.Places, placeText(place))
		}
		e.Tokens = append(e.Tokens, one)
	}
	for _, found := range r.tokens(t) {
		at, payload, status, why := judge(t, found)
		if status != 0 {
			if at >= 0 {
				e.Tokens[at].Effect, e.Tokens[at].Why = Refused, why
			}
			e.Reason = fmt.Sprintf("the token in %s is refused: %s", placeText(found.place), why)
			return r, &Answer{Status: status}
		}
		e.Tokens[at].Effect, e.Tokens[at].Why = Depends, unverified
		if r.claims != nil {
			r.claims = &claims{unknown: "which of the tokens counts"}
			continue
		}
		r.claims = &claims{payload: payload, words: slices.Concat([]string{"permission", "scope"}, t.Rules[at].SpaceDelimited)}
	}
	return r, nil
}

// judge returns the rule that may accept a token, with the claims, or the status and the reason
// with which the proxy refuses it. at is -1 for a token of which no rule is.
func judge(t *ir.Tokens, found foundToken) (at int, payload map[string]any, status int, why string) {
	payload, ok := payloadOf(found.text)
	if !ok {
		return -1, nil, http.StatusUnauthorized, "it is no JSON Web Token"
	}
	at, status, why = -1, http.StatusUnauthorized, "no rule for this place is for its issuer"
	for i := range t.Rules {
		rule := &t.Rules[i]
		if payload["iss"] != rule.Issuer || !slices.Contains(rule.Places(), found.place) {
			continue
		}
		if at = i; rule.Keys == "" {
			status, why = http.StatusUnauthorized, "the keys of its issuer are not known"
			continue
		}
		audiences := textsOf(payload["aud"], false)
		if len(rule.Audiences) == 0 || slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(rule.Audiences, a) }) {
			return i, payload, 0, ""
		}
		status, why = http.StatusForbidden, "it is for another audience"
	}
	return at, nil, status, why
}

// payloadOf returns the claims of a token, unverified.
func payloadOf(token string) (map[string]any, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var payload map[string]any
	return payload, err == nil && json.Unmarshal(text, &payload) == nil
}

// tokens returns the tokens at the places of rules.
func (r Request) tokens(t *ir.Tokens) []foundToken {
	var out []foundToken
	seen := map[ir.TokenPlace]bool{}
	for i := range t.Rules {
		for _, place := range t.Rules[i].Places() {
			if seen[place] {
				continue
			}
			seen[place] = true
			if text, has := r.tokenAt(place); has {
				out = append(out, foundToken{place, text})
			}
		}
	}
	return out
}

func (r Request) tokenAt(place ir.TokenPlace) (string, bool) {
	switch {
	case place.Param != "":
		return r.parameter(place.Param)
	case place.Cookie != "":
		for _, pair := range strings.Split(strings.Join(r.Headers["cookie"], ";"), ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && name == place.Cookie {
				return strings.Trim(value, `"`), true
			}
		}
		return "", false
	}
	values, has := r.Headers[place.Header.Name]
	_, text, with := strings.Cut(strings.Join(values, ","), place.Header.Prefix)
	return text, has && with
}

func placeText(place ir.TokenPlace) string {
	switch {
	case place.Param != "":
		return "query parameter " + place.Param
	case place.Cookie != "":
		return "cookie " + place.Cookie
	case place.Header.Prefix != "":
		return fmt.Sprintf("header %s after %q", place.Header.Name, place.Header.Prefix)
	}
	return "header " + place.Header.Name
}

// fits reports whether a claim fits a text.
func (c *claims) fits(path []string, t *ir.TextTest) (verdict, string) {
	switch {
	case c == nil:
		return doesNotHold, ""
	case c.unknown != "":
		return mayHold, c.unknown
	}
	var value any = c.payload
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	for _, one := range textsOf(value, len(path) == 1 && slices.Contains(c.words, path[0])) {
		if text(t, one, true, nil) == holds {
			return holds, ""
		}
	}
	return doesNotHold, ""
}

// textsOf returns the texts of a claim. One text may be a list of words.
func textsOf(value any, words bool) []string {
	switch value := value.(type) {
	case string:
		if words {
			return strings.Fields(value)
		}
		return []string{value}
	case []any:
		var out []string
		for _, one := range value {
			if text, ok := one.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// tokenWouldHelp reports whether a refused request might be taken if it had a token.
func tokenWouldHelp(h *ir.HTTPListener, r Request) bool {
	if h.Tokens == nil || r.claims != nil {
		return false
	}
	r.claims = &claims{unknown: "the claims of the token"}
	return !new(Explanation).decide(h.Access, r)
}

// text says which tokens are accepted.
func (t Token) text() string {
	out := fmt.Sprintf("%s, in %s", t.Issuer, strings.Join(t.Places, " or "))
	if len(t.Audiences) > 0 {
		out += ", for " + strings.Join(t.Audiences, " or ")
	}
	switch t.Effect {
	case Refused:
		return out + ": refused: " + t.Why
	case Depends:
		return out + ": depends on " + t.Why
	}
	return out + ": the request has none of this issuer"
}
