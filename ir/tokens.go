package ir

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// Tokens are the JSON Web Tokens that a listener verifies. A request with a token at a place
// of a rule is refused with 401 unless the token is valid by a rule of its issuer for that
// place. Each of several tokens must be valid. A request without a token is taken.
type Tokens struct{ Rules []TokenRule } // sorted by issuer

// TokenRule is an issuer whose tokens are accepted, and what becomes of them.
type TokenRule struct {
	Issuer string
	// Audiences are those of which a token must have one; none for any.
	Audiences []string
	// Keys are the public keys of the issuer, as a JSON Web Key Set; "" if there are none. Then
	// all tokens of the issuer are refused.
	Keys string
	// The places of tokens: headers, query parameters and cookies. Without any, they are
	// DefaultHeader and DefaultParam.
	FromHeaders []TokenHeader
	FromParams  []string
	FromCookies []string
	// PayloadHeader is the header in which the workload gets the claims; "" for none. Those
	// that callers send under its name and those of ClaimHeaders are removed.
	PayloadHeader string
	ClaimHeaders  []ClaimHeader
	// Forward leaves the token in the request.
	Forward bool
	// SpaceDelimited are claims whose value is a list of words in one text.
	SpaceDelimited []string
	Origins        []diag.Ref
}

// TokenHeader is a header with a token after a prefix.
type TokenHeader struct{ Name, Prefix string }

// ClaimHeader is a header with the value of a claim. Dots in Claim lead into objects.
type ClaimHeader struct{ Header, Claim string }

// DefaultHeader is a place of tokens of a rule that names none.
var DefaultHeader = TokenHeader{"authorization", "Bearer "}

// DefaultParam is the query parameter that is the other place.
const DefaultParam = "access_token"

// TokenPlace is where a request may have a token: a header with a prefix, a query parameter or
// a cookie.
type TokenPlace struct {
	Header        TokenHeader
	Param, Cookie string
}

// Places returns the places of the tokens of a rule.
func (r *TokenRule) Places() []TokenPlace {
	var out []TokenPlace
	for _, h := range r.FromHeaders {
		out = append(out, TokenPlace{Header: h})
	}
	for _, name := range r.FromParams {
		out = append(out, TokenPlace{Param: name})
	}
	for _, name := range r.FromCookies {
		out = append(out, TokenPlace{Cookie: name})
	}
	if len(out) == 0 {
		return []TokenPlace{{Header: DefaultHeader}, {Param: DefaultParam}}
	}
	return out
}

// At returns the rule for one of its places alone; false if it reads no tokens there.
func (r *TokenRule) At(place TokenPlace) (TokenRule, bool) {
	out := *r
	out.FromHeaders, out.FromParams, out.FromCookies = nil, nil, nil
	switch {
	case place.Param != "":
		out.FromParams = []string{place.Param}
	case place.Cookie != "":
		out.FromCookies = []string{place.Cookie}
	default:
		out.FromHeaders = []TokenHeader{place.Header}
	}
	return out, slices.Contains(r.Places(), place)
}
