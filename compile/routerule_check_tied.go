package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// mostTied is how many preceding rules a rule is compared with. Comparing all takes
// quadratic time, and longer lists of one precedence are written by programs.
const mostTied = 16

// checkTied reports a rule that only its name sorts after another one.
func (p *plan) checkTied(rule *routeRule) {
	if first := p.tied.Get(p.r, rule.host)[rule]; first != nil {
		p.conflict(diag.EqualPrecedence, rule.ref, "spec.precedence", fmt.Sprintf(
			"%s has precedence %d too: it gets the requests that both match, because it comes first by namespace and name",
			first.ref, first.precedence))
	}
}

// tiedRules maps each rule for a host to a preceding rule of the same precedence
// that may take its requests.
func (rd *reader) tiedRules(host string) map[*routeRule]*routeRule {
	rules, hidden := rd.rulesFor.under(rd, host), rd.hidden.Get(rd.r, host)
	tied := map[*routeRule]*routeRule{}
	owner := rd.ownerOf(host)
	meet := func(a, b *routeRule) bool {
		return callersMeet(rd.followers(a.source, a.namespace, owner), rd.followers(b.source, b.namespace, owner)) && requestsMeet(a.match, b.match)
	}
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

// callersMeet reports whether there may be callers that fit both sources.
func callersMeet(a, b *source) bool {
	if a != nil && b != nil && a.host != "" && b.host != "" && a.host != b.host {
		return false
	}
	_, both := joinedSource(a, b)
	return both
}

// requestsMeet reports whether there may be requests that meet both conditions.
func requestsMeet(a, b ir.Match) bool {
	_, _, some := joinedConditions(a, b, false)
	return some
}
