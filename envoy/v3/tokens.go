package v3

import (
	"fmt"
	"slices"

	commonmutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilot-api/pilot-api/ir"
)

const headerMutation = "envoy.filters.http.header_mutation"

// noKeys is a key set by which no token is valid. Envoy refuses one without keys, so it has one
// that is no point of its curve: no signature can fit it.
const noKeys = `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`

// wordClaims are the claims that are lists of words in every token.
var wordClaims = []string{"permission", "scope"}

// tokenFilters returns the filters that verify tokens.
//
// If a request has several tokens, one filter of Envoy lets it pass although one of them is
// invalid, and the workload may take that one for good. So each place has a filter of its own,
// which only verifies. The filters after them make headers and metadata of tokens that are
// known to be valid. The first filter removes those headers from requests of callers.
func tokenFilters(t *ir.Tokens) []*hcmv3.HttpFilter {
	if t == nil {
		return nil
	}
	var out []*hcmv3.HttpFilter
	if names := headersOfTokens(t); len(names) > 0 {
		out = append(out, httpFilter(headerMutation, typed(withoutHeaders(names))))
	}
	places, groups := placesOfTokens(t), byIssuer(t.Rules)
	verified := len(places) > 1 || len(groups) > 1
	if verified {
		for _, place := range places {
			out = append(out, httpFilter(jwtFilter, typed(verifiesAt(t, place))))
		}
	}
	for _, group := range groups {
		out = append(out, httpFilter(jwtFilter, typed(uses(group, verified))))
	}
	return out
}

// verifiesAt refuses requests whose token at a place is valid by none of the rules for it.
func verifiesAt(t *ir.Tokens, place ir.TokenPlace) *jwtv3.JwtAuthentication {
	providers := map[string]*jwtv3.JwtProvider{}
	one := &jwtv3.JwtRequirementOrList{}
	for i := range t.Rules {
		rule, reads := t.Rules[i].At(place)
		if !reads {
			continue
		}
		name := providerName(i)
		p := provider(&rule)
		p.Forward = true
		providers[name] = p
		one.Requirements = append(one.Requirements, &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: name}})
	}
	one.Requirements = append(one.Requirements, mayBeMissing)
	return requiring(providers, &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_RequiresAny{RequiresAny: one}})
}

// uses makes headers and metadata of the tokens of some rules. Envoy finds the rule of a token
// by the issuer, so the issuers differ. If all tokens are verified already, one that is invalid
// here is that of a rule of another group.
func uses(rules []ir.TokenRule, verified bool) *jwtv3.JwtAuthentication {
	providers := map[string]*jwtv3.JwtProvider{}
	for i := range rules {
		r := &rules[i]
		p := provider(r)
		p.Forward, p.ForwardPayloadHeader, p.PayloadInMetadata = r.Forward, r.PayloadHeader, jwtPayload
		p.NormalizePayloadInMetadata = &jwtv3.JwtProvider_NormalizePayload{SpaceDelimitedClaims: slices.Concat(wordClaims, r.SpaceDelimited)}
		for _, h := range r.ClaimHeaders {
			p.ClaimToHeaders = append(p.ClaimToHeaders, &jwtv3.JwtClaimToHeader{HeaderName: h.Header, ClaimName: h.Claim})
		}
		providers[providerName(i)] = p
	}
	if verified {
		return requiring(providers, mayFail)
	}
	return requiring(providers, mayBeMissing)
}

var (
	mayBeMissing = &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
	mayFail      = &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_AllowMissingOrFailed{AllowMissingOrFailed: &emptypb.Empty{}}}
)

func requiring(providers map[string]*jwtv3.JwtProvider, requires *jwtv3.JwtRequirement) *jwtv3.JwtAuthentication {
	return &jwtv3.JwtAuthentication{Providers: providers, Rules: []*jwtv3.RequirementRule{{
		Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		RequirementType: &jwtv3.RequirementRule_Requires{Requires: requires},
	}}}
}

// providerName is Istio's name of a rule.
func providerName(i int) string { return fmt.Sprintf("origins-%d", i) }

// provider returns a provider that only verifies.
func provider(r *ir.TokenRule) *jwtv3.JwtProvider {
	keys := r.Keys
	if keys == "" {
		keys = noKeys
	}
	out := &jwtv3.JwtProvider{
		Issuer: r.Issuer, Audiences: r.Audiences,
		JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
			Specifier: &corev3.DataSource_InlineString{InlineString: keys},
		}},
		FromParams: r.FromParams, FromCookies: r.FromCookies,
		// A token that comes again is not verified again, except for its times and audience.
		JwtCacheConfig: &jwtv3.JwtCacheConfig{},
	}
	for _, h := range r.FromHeaders {
		out.FromHeaders = append(out.FromHeaders, &jwtv3.JwtHeader{Name: h.Name, ValuePrefix: h.Prefix})
	}
	return out
}

// byIssuer returns the rules in as few groups as possible, in none of which two have the same
// issuer.
func byIssuer(rules []ir.TokenRule) [][]ir.TokenRule {
	var out [][]ir.TokenRule
	times := map[string]int{}
	for _, r := range rules {
		at := times[r.Issuer]
		if times[r.Issuer]++; at == len(out) {
			out = append(out, nil)
		}
		out[at] = append(out[at], r)
	}
	return out
}

// placesOfTokens returns the places of all rules once each, in the order in which they come
// first.
func placesOfTokens(t *ir.Tokens) []ir.TokenPlace {
	var out []ir.TokenPlace
	for i := range t.Rules {
		for _, place := range t.Rules[i].Places() {
			if !slices.Contains(out, place) {
				out = append(out, place)
			}
		}
	}
	return out
}

// headersOfTokens returns the headers that are made of tokens, sorted.
func headersOfTokens(t *ir.Tokens) []string {
	var out []string
	for _, r := range t.Rules {
		if r.PayloadHeader != "" {
			out = append(out, r.PayloadHeader)
		}
		for _, h := range r.ClaimHeaders {
			out = append(out, h.Header)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func withoutHeaders(names []string) *mutationv3.HeaderMutation {
	mutations := &mutationv3.Mutations{}
	for _, name := range names {
		mutations.RequestMutations = append(mutations.RequestMutations, &commonmutationv3.HeaderMutation{
			Action: &commonmutationv3.HeaderMutation_Remove{Remove: name},
		})
	}
	return &mutationv3.HeaderMutation{Mutations: mutations}
}
