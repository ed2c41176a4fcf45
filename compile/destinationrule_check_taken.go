package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// checkTakenRule reports a rule that no callers of other namespaces follow, because
// rules of another namespace take precedence for all of them. The callers'
// namespace comes first, then the host's own, then the root namespace. Callers'
// namespaces may make such exceptions, so they are reported only if nobody else
// follows this rule.
func (d *check) checkTakenRule(rule *destinationRule, host string) {
	home := rule.ref.Namespace
	if rule.labels != nil || d.pilot().AnyNamespaceRules || d.pilot().ShortNamesByCaller ||
		home != d.settings.RootNamespace && home != d.ownerOf(host) {
		return // If anybody follows it, callers of its own namespace do.
	}
	atHome := mesh.Exported(rule.exported, home, home)
	var audience []*viewpoint
	if mesh.Exported(rule.exported, home, "") {
		audience = append(audience, d.forDomain(""))
	} else {
		for _, namespace := range namespacesOf(rule.exported) {
			if namespace != home && len(audience) < maxClaims {
				audience = append(audience, d.home(namespace))
			}
		}
	}
	for _, callers := range audience {
		if by := callers.ruleFor(host); by == nil || by.ref.Namespace == home {
			return
		}
	}
	if len(audience) == 0 {
		return
	}
	by := audience[0].ruleFor(host)
	why := "is in the callers' own namespace"
	if by.ref.Namespace == audience[0].ownerOf(host) {
		why = "is in the host's own namespace"
	}
	if atHome {
		d.notHonoured(diag.FollowedByFew, rule.ref, "spec.host", fmt.Sprintf("only callers in namespace %s follow it: %s is for %s and %s", home, by.ref, by.spec.GetHost(), why))
		return
	}
	d.conflict(diag.RuleClaimed, rule.ref, "spec.host", fmt.Sprintf("the rule has no effect: %s is for %s and %s", by.ref, by.spec.GetHost(), why))
}
