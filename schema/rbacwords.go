package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	rbac "k8s.io/api/rbac/v1"
)

// A verb or resource with a typing error gives nothing, and nobody notices. Roles may have
// words of other API groups, because a file may be for a cluster too. So only the groups of
// this server are checked, and the result is a warning.

// roleVerbs are the verbs that have a meaning here.
var roleVerbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
	"escalate", "bind", "impersonate", "route", "attach", "claim", "*",
}

// questions are the resources of registryGroup without objects.
var questions = []string{
	"problems", "references", "previews", "reach", "standings", "authority", "authority/revocations", "authority/rotation",
	"proxies", "proxies/config", "proxies/route", "proxies/labels", "proxies/router", "proxies/ingress", "proxies/sidecar",
}

// roleResources returns the resources of each API group of this server but the core group.
var roleResources = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, k := range Kinds() {
		if k.Group != "" {
			all[k.Group] = append(all[k.Group], k.Plural, k.Plural+"/status", k.Plural+"/history")
		}
	}
	all[registryGroup] = append(all[registryGroup], questions...)
	return all
})

// warnOfUnknown warns of verbs and resources that do not exist.
func warnOfUnknown(p *problems, at string, rule rbac.PolicyRule) {
	known := []string{}
	for _, group := range rule.APIGroups {
		resources, ours := roleResources()[group]
		if !ours {
			return
		}
		known = append(known, resources...)
	}
	for i, verb := range rule.Verbs {
		if !slices.Contains(roleVerbs, verb) {
			p.warn(fmt.Sprintf("%s.verbs[%d]", at, i), p.unknownWord(fmt.Sprintf("there is no verb %q", verb), verb, roleVerbs))
		}
	}
	for i, resource := range rule.Resources {
		if !strings.Contains(resource, "*") && !slices.Contains(known, resource) {
			p.warn(fmt.Sprintf("%s.resources[%d]", at, i), p.unknownWord(fmt.Sprintf("%s has no resource %q", strings.Join(rule.APIGroups, ", "), resource), resource, known))
		}
	}
}

// mostHints is how many warnings of a role have the word that was probably meant. To find
// it, a word is compared with all.
const mostHints = 20

// unknownWord returns a message about a word, with the known one that is closest to it.
func (p *problems) unknownWord(what, word string, known []string) string {
	if len(p.list) < mostHints {
		if near := Nearest(word, known); near != "" {
			return "gives nothing: " + what + "; did you mean " + near + "?"
		}
	}
	return "gives nothing: " + what
}
