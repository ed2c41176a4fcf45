package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
)

// mostTied is how many preceding rules a rule is compared with. Comparing all takes
// quadratic time, and longer lists of one precedence are written by programs.
const mostTied = 16

// checkTied reports a rule that only its name sorts after another one.
func (p *plan) checkTied(rule *routeRule) {
	if first := p.tied.Get(p.r, rule.host)[rule]; first != nil {
		p.conflict(diag.EqualPrecedence, rule.ref, "spec.precedence", fmt.Sprintf(
			"%s has precedence %d too: requests that both match are its own, as it comes first by namespace and name",
			first.ref, first.precedence))
	}
}

// tiedRules maps each rule for a host to a preceding rule of the same precedence
// that may take its requests.
func (p *plan) tiedRules(host string) map[*routeRule]*routeRule {
	rules, hidden := p.rulesFor.under(p, host), p.hidden.Get(p.r, host)
	tied := map[*routeRule]*routeRule{}
	for i, rule := range rules {
		for _, first := range rules[max(0, i-mostTied):i] {
			if first.precedence == rule.precedence && hidden[rule] == nil && hidden[first] == nil && meet(first, rule) {
				tied[rule] = first
				break
			}
		}
	}
	return tied
}

// meet reports whether there may be requests that both rules match.
func meet(a, b *routeRule) bool {
	if a.source != nil && b.source != nil && a.source.host != "" && b.source.host != "" && a.source.host != b.source.host {
		return false
	}
	_, callers := joinedSource(a.source, b.source)
	_, _, some := joinedConditions(a.match, b.match, false)
	return callers && some
}
