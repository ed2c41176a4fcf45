package authz

import (
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/schema"
)

// role is a Role or ClusterRole.
type role struct {
	key       schema.Key
	labels    labels.Set
	rules     []rbac.PolicyRule
	selectors []labels.Selector // of its aggregationRule; nil for none
}

// roleOf reads a role. It returns nil for an object that cannot be read, which gives no
// rights.
func roleOf(o *schema.Object) *role {
	spec, err := o.Spec()
	if err != nil {
		return nil
	}
	rules, ok := spec.(*schema.RoleRules)
	if !ok {
		return nil
	}
	out := &role{key: o.Key(), labels: o.Meta.Labels, rules: rules.Rules}
	if rules.AggregationRule == nil {
		return out
	}
	for _, one := range rules.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&one)
		if err != nil {
			return nil
		}
		out.selectors = append(out.selectors, selector)
	}
	return out
}

// allows reports whether a rule allows something, as in Kubernetes
// (pkg/apis/rbac/v1/evaluation_helpers.go there).
func allows(rule *rbac.PolicyRule, a Attributes) bool {
	if !matches(rule.Verbs, a.Verb) {
		return false
	}
	if a.isPath() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlMatches(url, a.Path) })
	}
	return matches(rule.APIGroups, a.Group) && resourceMatches(rule.Resources, a) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

// matches reports whether a list has a word, or *.
func matches(list []string, word string) bool {
	for _, one := range list {
		if one == word || one == "*" {
			return true
		}
	}
	return false
}

func resourceMatches(resources []string, a Attributes) bool {
	whole := a.ResourceName()
	for _, one := range resources {
		switch {
		case one == "*" || one == whole:
			return true
		case a.Subresource != "" && len(one) == len(a.Subresource)+2 && strings.HasPrefix(one, "*/") && one[2:] == a.Subresource:
			return true
		}
	}
	return false
}

func urlMatches(rule, path string) bool {
	if rule == "*" || rule == path {
		return true
	}
	prefix, isPrefix := strings.CutSuffix(rule, "*")
	return isPrefix && strings.HasPrefix(path, prefix)
}
