package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
)

// mostTied is the number of rules before it that a rule is held against. More of one
// precedence were made by a program, and to look at all takes the square of their
// number.
const mostTied = 16

// checkTied reports a rule that comes after another one by nothing but its name.
func (p *plan) checkTied(rule *routeRule) {
	if first := p.tied.Get(p.r, rule.host)[rule]; first != nil {
		p.conflict(diag.EqualPrecedence, rule.ref, "spec.precedence", fmt.Sprintf(
			"%s has precedence %d too: requests that both match are its own, as it comes first by namespace and name",
			first.ref, first.precedence))
	}
}

// tiedRules are those for a host that have the precedence of one before them which
// may take what they match, with that.
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
