package schema

import (
	"fmt"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// The kinds of roles are those of Kubernetes: rbac.authorization.k8s.io/v1.
const (
	rbacGroup = "rbac.authorization.k8s.io"

	KindRole               = "Role"
	KindClusterRole        = "ClusterRole"
	KindRoleBinding        = "RoleBinding"
	KindClusterRoleBinding = "ClusterRoleBinding"
)

// RoleRules is the spec of a Role and of a ClusterRole. Only the latter has an
// AggregationRule.
type RoleRules struct {
	Rules           []rbac.PolicyRule     `json:"rules,omitempty"`
	AggregationRule *rbac.AggregationRule `json:"aggregationRule,omitempty"`
}

// Binding is the spec of a RoleBinding and of a ClusterRoleBinding.
type Binding struct {
	Subjects []rbac.Subject `json:"subjects,omitempty"`
	RoleRef  rbac.RoleRef   `json:"roleRef"`
}

func init() {
	rulesColumn := stringColumn("Rules", "How many rules the role has.", func(r *RoleRules) string { return fmt.Sprint(len(r.Rules)) })
	roleColumn := stringColumn("Role", "The role that the subjects have.", func(b *Binding) string { return b.RoleRef.Kind + "/" + b.RoleRef.Name })
	subjectsColumn := listColumn("Subjects", "Who has the role.", ",", func(b *Binding) []string {
		var names []string
		for _, s := range b.Subjects {
			names = append(names, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))
		}
		return names
	})
	kind := func(name, doc string, k Kind) {
		k.Group, k.Version, k.Kind, k.Doc = rbacGroup, "v1", name, doc
		k.Singular = strings.ToLower(name)
		k.Plural, k.Dashed, k.Flat, k.PathNames = k.Singular+"s", k.Singular, true, true
		register(&k)
	}
	kind(KindRole, "A Role is a set of rights in its namespace. A RoleBinding of the namespace gives it to users, groups and service accounts. Rights only add up: nothing takes one away.",
		Kind{Columns: []Column{rulesColumn}, spec: inJSON[RoleRules](), check: checkAs(checkRole)})
	kind(KindClusterRole, "A ClusterRole is a set of rights. A ClusterRoleBinding gives them in all namespaces, and a RoleBinding gives them in its namespace. "+
		"The server has some of its own: view, edit, admin, cluster-admin, proxy, monitoring and those whose names begin with system:. It restores them when it starts.",
		Kind{Cluster: true, Columns: []Column{rulesColumn}, spec: inJSON[RoleRules](), check: checkAs(checkClusterRole)})
	kind(KindRoleBinding, "A RoleBinding gives a Role of its namespace, or a ClusterRole, to users, groups and service accounts, in its namespace.",
		Kind{Columns: []Column{roleColumn, subjectsColumn}, spec: inJSON[Binding](), check: checkAs(checkBinding)})
	kind(KindClusterRoleBinding, "A ClusterRoleBinding gives a ClusterRole to users, groups and service accounts, in all namespaces and for what is in none.",
		Kind{Cluster: true, Columns: []Column{roleColumn, subjectsColumn}, spec: inJSON[Binding](), check: checkAs(checkBinding)})
}

func checkRole(r *RoleRules) diag.List {
	var p problems
	for i, rule := range r.Rules {
		if len(rule.NonResourceURLs) > 0 {
			p.invalid(fmt.Sprintf("spec.rules[%d].nonResourceURLs", i), "must be left out: a path belongs to no namespace, so only a ClusterRole may have it")
		}
		checkRule(&p, i, rule)
	}
	return p.list
}

func checkClusterRole(r *RoleRules) diag.List {
	var p problems
	for i, rule := range r.Rules {
		checkRule(&p, i, rule)
	}
	if r.AggregationRule == nil {
		return p.list
	}
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		p.required("spec.aggregationRule.clusterRoleSelectors", "must have at least one selector")
	}
	for i, selector := range r.AggregationRule.ClusterRoleSelectors {
		if _, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
			p.invalid(fmt.Sprintf("spec.aggregationRule.clusterRoleSelectors[%d]", i), err.Error())
		}
	}
	return p.list
}

// checkRule applies the rules of Kubernetes: a rule is for resources or for paths.
func checkRule(p *problems, i int, rule rbac.PolicyRule) {
	at := fmt.Sprintf("spec.rules[%d]", i)
	if len(rule.Verbs) == 0 {
		p.required(at+".verbs", "must have at least one verb")
	}
	if len(rule.NonResourceURLs) > 0 {
		if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
			p.invalid(at+".nonResourceURLs", "must be in a rule without apiGroups, resources and resourceNames")
		}
		for n, url := range rule.NonResourceURLs {
			if !strings.HasPrefix(url, "/") && url != rbac.NonResourceAll || strings.Contains(strings.TrimSuffix(url, "*"), "*") {
				p.invalidValue(fmt.Sprintf("%s.nonResourceURLs[%d]", at, n), url, "must be a path, perhaps with a * at its end")
			}
		}
		return
	}
	if len(rule.APIGroups) == 0 {
		p.required(at+".apiGroups", `must have at least one API group; "" is the core group`)
	}
	if len(rule.Resources) == 0 {
		p.required(at+".resources", "must have at least one resource")
	}
	warnOfUnknown(p, at, rule)
}

func checkBinding(b *Binding) diag.List {
	var p problems
	if b.RoleRef.Name == "" {
		p.required("spec.roleRef.name", "must be given")
	}
	for i, s := range b.Subjects {
		at := fmt.Sprintf("spec.subjects[%d]", i)
		switch {
		case s.Name == "":
			p.required(at+".name", "must be given")
		case s.Kind == rbac.ServiceAccountKind && s.Namespace == "":
			p.required(at+".namespace", "must be given: a service account is in a namespace")
		case s.Kind == rbac.ServiceAccountKind && s.APIGroup != "":
			p.invalid(at+".apiGroup", "must be left out for a ServiceAccount")
		case s.Kind != rbac.ServiceAccountKind && s.Namespace != "":
			p.invalid(at+".namespace", "must be left out: users and groups are in no namespace")
		case slices.Contains([]string{"system:unauthenticated", "system:anonymous"}, s.Name):
			p.suspect(at+".name", "everybody who reaches the server has this role")
		}
	}
	return p.list
}
