package compile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// requestAuthentication is a RequestAuthentication as read from its object.
type requestAuthentication struct {
	declared
	selector mesh.Labels
	rules    []tokenRule
	// unreadable is set for an object that cannot be read. Its workloads take no requests.
	unreadable bool
}

// tokenRule is a rule, and where its keys are if they are not in it.
type tokenRule struct {
	ir.TokenRule
	source mesh.KeySource
}

// mostKeyBytes is the maximum size of all keys of a workload. Each of its listeners has them.
const mostKeyBytes = 256 << 10

func readRequestAuthentication(p *plan, of declared, spec *security.RequestAuthentication) *requestAuthentication {
	out := &requestAuthentication{declared: of, selector: spec.GetSelector().GetMatchLabels(), unreadable: spec == unreadableTokens}
	for i, r := range spec.GetJwtRules() {
		rule := tokenRule{
			TokenRule: ir.TokenRule{
				Issuer: r.GetIssuer(), Audiences: r.GetAudiences(), FromParams: r.GetFromParams(), FromCookies: r.GetFromCookies(),
				PayloadHeader: strings.ToLower(r.GetOutputPayloadToHeader()), Forward: r.GetForwardOriginalToken(),
				SpaceDelimited: r.GetSpaceDelimitedClaims(), Origins: []diag.Ref{of.ref},
			},
			source: mesh.KeySourceOf(r),
		}
		for _, from := range r.GetFromHeaders() {
			rule.FromHeaders = append(rule.FromHeaders, ir.TokenHeader{Name: strings.ToLower(from.GetName()), Prefix: from.GetPrefix()})
		}
		for _, header := range r.GetOutputClaimToHeaders() {
			rule.ClaimHeaders = append(rule.ClaimHeaders, ir.ClaimHeader{Header: strings.ToLower(header.GetHeader()), Claim: header.GetClaim()})
		}
		if rule.source == (mesh.KeySource{}) {
			keys, err := credential.PublicKeys([]byte(r.GetJwks()))
			if rule.Keys = keys; err != nil {
				p.notHonoured(diag.Closed, of.ref, fmt.Sprintf("spec.jwtRules[%d].jwks", i), "all tokens of the issuer are refused: its key set cannot be used: "+err.Error())
			}
		}
		out.rules = append(out.rules, rule)
	}
	return out
}

// unreadableTokens is the spec of a RequestAuthentication that cannot be read.
var unreadableTokens = &security.RequestAuthentication{}

func readsNoTokens(*schema.Object) any { return unreadableTokens }

// takeKeys sets the public keys that the server fetched. It must be called within graph.Do.
func (m *model) takeKeys(keys *mesh.KeySets) {
	for source := range m.keysNow.All() {
		if _, still := keys.All()[source]; !still {
			m.keySets.Set(source, mesh.KeySet{})
		}
	}
	for source, set := range keys.All() {
		m.keySets.Set(source, set)
	}
	m.keysFull.Set(none{}, len(keys.All()) >= mesh.MostKeySources)
	m.keysNow = keys
}

// checkRequestAuthentication reports keys that cannot be had.
func (p *plan) checkRequestAuthentication(ra *requestAuthentication) {
	for i, rule := range ra.rules {
		if rule.source == (mesh.KeySource{}) {
			continue
		}
		set := p.keySets.Get(p.r, rule.source)
		if set == (mesh.KeySet{}) && p.keysFull.Get(p.r, none{}) {
			set.Problem = fmt.Sprintf("its keys have not been fetched, and the server fetches at most %d key sets, those of the oldest objects first", mesh.MostKeySources)
		}
		if set.Problem == "" {
			continue
		}
		effect := "all tokens of the issuer are refused: "
		if set.Keys != "" {
			effect = "its last keys are used still: "
		}
		p.notHonoured(diag.Closed, ra.ref, fmt.Sprintf("spec.jwtRules[%d].jwksUri", i), effect+set.Problem)
	}
}

// authenticationsOf returns the RequestAuthentications for the workload of a proxy: those of the
// root namespace and of its own.
func (p *plan) authenticationsOf(who *caller) []*requestAuthentication {
	var out []*requestAuthentication
	for _, namespace := range slices.Compact([]string{p.settings.RootNamespace, who.namespace}) {
		for _, ra := range p.authenticationsIn.under(&p.reader, namespace) {
			if who.bears(ra.selector) {
				out = append(out, ra)
			}
		}
	}
	return out
}

// tokensOf returns the tokens that RequestAuthentications verify, nil for none.
func (p *plan) tokensOf(authentications []*requestAuthentication) *ir.Tokens {
	var rules []ir.TokenRule
	size := 0
	for _, ra := range authentications {
		for i, rule := range ra.rules {
			if rule.source != (mesh.KeySource{}) {
				rule.Keys = p.keySets.Get(p.r, rule.source).Keys
			}
			// Envoy gets the keys for each place, and once more.
			if more := len(rule.Keys) * (1 + len(rule.Places())); size+more <= mostKeyBytes {
				size += more
			} else {
				rule.Keys = ""
				p.notHonoured(diag.Closed, ra.ref, fmt.Sprintf("spec.jwtRules[%d]", i), fmt.Sprintf("all tokens of the issuer are refused at a workload: the keys of all its issuers have more than %d bytes", mostKeyBytes))
			}
			rules = withRule(rules, rule.TokenRule)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	slices.SortStableFunc(rules, func(a, b ir.TokenRule) int { return cmp.Compare(a.Issuer, b.Issuer) })
	return &ir.Tokens{Rules: rules}
}

// withRule adds a rule. One that says the same as another one becomes one with it.
func withRule(rules []ir.TokenRule, rule ir.TokenRule) []ir.TokenRule {
	for i, other := range rules {
		origins := other.Origins
		if other.Origins = rule.Origins; reflect.DeepEqual(other, rule) {
			rules[i].Origins = slices.Concat(origins, rule.Origins)
			return rules
		}
	}
	return append(rules, rule)
}

// refusesAll returns a step that refuses all requests, for a RequestAuthentication that cannot
// be read; false if there is none.
func refusesAll(authentications []*requestAuthentication) (ir.AccessStep, bool) {
	step := ir.AccessStep{Action: ir.Deny}
	for _, ra := range authentications {
		if ra.unreadable {
			step.Policies = append(step.Policies, ir.AccessPolicy{Name: fmt.Sprintf("ns[%s]-requestauthentication[%s]", ra.ref.Namespace, ra.ref.Name), Origins: []diag.Ref{ra.ref}})
		}
	}
	return step, len(step.Policies) > 0
}
