package authz_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/schema/schematest"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
)

// naive decides as the page of Kubernetes about RBAC says: word for word, without an index.
func naive(objects []*schema.Object, who identity.Identity, a authz.Attributes) bool {
	if who.In(identity.Masters) {
		return true
	}
	for _, o := range objects {
		spec, _ := o.Spec()
		b, isBinding := spec.(*schema.Binding)
		everywhere := o.Kind.Kind == schema.KindClusterRoleBinding
		if !isBinding || !everywhere && (a.Namespace == "" || o.Meta.Namespace != a.Namespace) || !slices.ContainsFunc(b.Subjects, func(s rbac.Subject) bool { return isSubject(s, who) }) {
			continue
		}
		for _, r := range objects {
			rules, isRole := mustSpec(r).(*schema.RoleRules)
			if !isRole || r.Kind.Kind != b.RoleRef.Kind || r.Meta.Name != b.RoleRef.Name || b.RoleRef.Kind == schema.KindRole && r.Meta.Namespace != o.Meta.Namespace {
				continue
			}
			if slices.ContainsFunc(rules.Rules, func(rule rbac.PolicyRule) bool { return naiveRule(rule, a) }) {
				return true
			}
		}
	}
	return false
}

func mustSpec(o *schema.Object) any {
	spec, err := o.Spec()
	if err != nil {
		panic(err)
	}
	return spec
}

func isSubject(s rbac.Subject, who identity.Identity) bool {
	switch s.Kind {
	case rbac.UserKind:
		return s.Name == who.Name
	case rbac.GroupKind:
		return who.In(s.Name)
	}
	return who.Name == "system:serviceaccount:"+s.Namespace+":"+s.Name
}

func naiveRule(rule rbac.PolicyRule, a authz.Attributes) bool {
	has := func(list []string, words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	if !has(rule.Verbs, a.Verb, "*") {
		return false
	}
	if a.Resource == "" && !a.Unnamed {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			return url == a.Path || strings.HasSuffix(url, "*") && strings.HasPrefix(a.Path, url[:len(url)-1])
		})
	}
	resources := []string{a.Resource, "*"}
	if a.Subresource != "" {
		resources = []string{a.Resource + "/" + a.Subresource, "*/" + a.Subresource, "*"}
	}
	return has(rule.APIGroups, a.Group, "*") && has(rule.Resources, resources...) && (len(rule.ResourceNames) == 0 || has(rule.ResourceNames, a.Name))
}

// TestRolesDecideAsTheNaiveEvaluator draws roles, bindings and questions from few words, and
// compares both ways to decide, also after changes of the roles.
func TestRolesDecideAsTheNaiveEvaluator(t *testing.T) {
	word := func(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }
	list := func(words ...string) *rapid.Generator[[]string] { return rapid.SliceOfN(word(words...), 0, 3) }
	verb, group, resource, namespace := word("get", "list", "*"), word("", "a.io", "*"), word("x", "y", "x/s", "*/s", "*"), word("n", "m")
	rule := rapid.Custom(func(t *rapid.T) rbac.PolicyRule {
		if rapid.IntRange(0, 3).Draw(t, "path") == 0 {
			return rbac.PolicyRule{Verbs: rapid.SliceOfN(verb, 1, 2).Draw(t, "verbs"), NonResourceURLs: list("/a", "/a/*", "/*", "*", "/b").Draw(t, "urls")}
		}
		return rbac.PolicyRule{
			Verbs: rapid.SliceOfN(verb, 1, 2).Draw(t, "verbs"), APIGroups: rapid.SliceOfN(group, 1, 2).Draw(t, "groups"),
			Resources: rapid.SliceOfN(resource, 1, 2).Draw(t, "resources"), ResourceNames: list("one", "two", "").Draw(t, "names"),
		}
	})
	subject := rapid.Custom(func(t *rapid.T) rbac.Subject {
		switch kind := word(rbac.UserKind, rbac.GroupKind, rbac.ServiceAccountKind).Draw(t, "kind"); kind {
		case rbac.ServiceAccountKind:
			return rbac.Subject{Kind: kind, Namespace: namespace.Draw(t, "namespace"), Name: "sa"}
		default:
			return rbac.Subject{Kind: kind, Name: word("u", "g").Draw(t, "name")}
		}
	})
	one := rapid.Custom(func(rt *rapid.T) *schema.Object {
		name, in := word("p", "q").Draw(rt, "name"), namespace.Draw(rt, "namespace")
		rules, subjects := rapid.SliceOfN(rule, 1, 3).Draw(rt, "rules"), rapid.SliceOfN(subject, 1, 3).Draw(rt, "subjects")
		ref := rbac.RoleRef{Kind: word(schema.KindRole, schema.KindClusterRole).Draw(rt, "role kind"), Name: word("p", "q").Draw(rt, "role")}
		switch kind := word(schema.KindRole, schema.KindClusterRole, schema.KindRoleBinding, schema.KindClusterRoleBinding).Draw(rt, "kind"); kind {
		case schema.KindRole:
			return schematest.Object(t, kind, in, name, schema.RoleRules{Rules: rules})
		case schema.KindClusterRole:
			return schematest.Object(t, kind, "", name, schema.RoleRules{Rules: rules})
		case schema.KindRoleBinding:
			return schematest.Object(t, kind, in, name, schema.Binding{Subjects: subjects, RoleRef: ref})
		default:
			ref.Kind = schema.KindClusterRole
			return schematest.Object(t, kind, "", name, schema.Binding{Subjects: subjects, RoleRef: ref})
		}
	})
	question := rapid.Custom(func(t *rapid.T) authz.Attributes {
		a := authz.Attributes{Verb: word("get", "list").Draw(t, "verb")}
		if rapid.Bool().Draw(t, "path") {
			a.Path = word("/a", "/a/b", "/b", "/c").Draw(t, "url")
			return a
		}
		a.Group, a.Resource = word("", "a.io", "b.io").Draw(t, "group"), word("x", "y", "").Draw(t, "resource")
		a.Unnamed = a.Resource == ""
		a.Subresource, a.Name = word("", "s", "t").Draw(t, "sub"), word("", "one", "two").Draw(t, "object")
		a.Namespace = word("", "n", "m").Draw(t, "in")
		return a
	})
	who := rapid.Custom(func(t *rapid.T) identity.Identity {
		return identity.Identity{Name: word("u", "u", "system:serviceaccount:n:sa").Draw(t, "user"), Groups: list("g", "u").Draw(t, "in groups")}
	})
	allowed, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		roles, byKey := &authz.Roles{}, map[schema.Key]*schema.Object{}
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			for _, o := range rapid.SliceOfN(one, 6, 24).Draw(rt, "objects") {
				byKey[o.Key()] = o
				roles.Put(o)
				if rapid.IntRange(0, 5).Draw(rt, "delete") == 0 {
					delete(byKey, o.Key())
					roles.Delete(o.Key())
				}
			}
			var objects []*schema.Object
			for _, o := range byKey {
				objects = append(objects, o)
			}
			for range 10 {
				a, asks := question.Draw(rt, "question"), who.Draw(rt, "who")
				got, want := roles.Authorize(t.Context(), asks, a), naive(objects, asks, a)
				if got.Allowed != want {
					rt.Fatalf("%+v of %+v: %v (%s), want %v", a, asks, got.Allowed, got.Reason, want)
				}
				if all++; want {
					allowed++
				}
			}
		}
	})
	if allowed*50 < all {
		t.Errorf("%d of %d questions were allowed: the words are too many", allowed, all)
	}
}

// TestAggregation checks that a role has the rules of those that it selects, also of one that
// selects it in turn, and its own only as long as it selects none.
func TestAggregation(t *testing.T) {
	roles := &authz.Roles{}
	role := func(name, label, selects string, resource string) *schema.Object {
		spec := schema.RoleRules{Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}}}
		if selects != "" {
			spec.AggregationRule = &rbac.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": selects}}}}
		}
		o := schematest.Object(t, schema.KindClusterRole, "", name, spec)
		o, err := o.WithMeta(metav1.ObjectMeta{Name: name, Labels: map[string]string{"to": label}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	roles.Put(role("a", "b", "a", "own"))
	roles.Put(role("b", "a", "b", "inner"))
	roles.Put(role("c", "a", "", "part"))
	roles.Put(role("d", "other", "", "foreign"))
	roles.Put(role("e", "other", "nothing", "alone"))
	for _, name := range []string{"a", "e"} {
		roles.Put(schematest.Object(t, schema.KindClusterRoleBinding, "", name, schema.Binding{
			RoleRef: rbac.RoleRef{Kind: schema.KindClusterRole, Name: name}, Subjects: []rbac.Subject{{Kind: rbac.UserKind, Name: "u"}},
		}))
	}
	for resource, want := range map[string]bool{"own": false, "inner": true, "part": true, "foreign": false, "alone": true} {
		if got := roles.Authorize(t.Context(), identity.Identity{Name: "u"}, authz.Attributes{Verb: "get", Resource: resource}); got.Allowed != want {
			t.Errorf("%s: %+v", resource, got)
		}
	}
}

// TestBuiltInsAreValid checks that the server accepts its own roles, and what the roles for
// people allow.
func TestBuiltInsAreValid(t *testing.T) {
	roles := &authz.Roles{}
	for _, o := range authz.BuiltIns() {
		if list := schema.Validate(o); list.Err() != nil {
			t.Errorf("%s: %v", o.Key(), list)
		}
		roles.Put(o)
	}
	for _, name := range []string{authz.RoleView, authz.RoleEdit, authz.RoleAdmin, authz.RoleClusterAdmin, authz.RoleMonitoring} {
		roles.Put(schematest.Object(t, schema.KindClusterRoleBinding, "", "test-"+name, schema.Binding{
			RoleRef: rbac.RoleRef{Kind: schema.KindClusterRole, Name: name}, Subjects: []rbac.Subject{{Kind: rbac.UserKind, Name: name}},
		}))
	}
	on := func(verb, kind string) authz.Attributes {
		return authz.On(verb, schema.Key{Kind: kind, Namespace: "n", Name: "x"})
	}
	for _, tc := range []struct {
		a                             authz.Attributes
		view, edit, admin, monitoring bool
	}{
		{on("get", "RouteRule"), true, true, true, false},
		{on("update", "RouteRule"), false, true, true, false},
		{on("deletecollection", "Gateway"), false, true, true, false},
		{on("get", "Secret"), false, true, true, false},
		{on("get", "AuthorizationPolicy"), true, true, true, false},
		{on("update", "AuthorizationPolicy"), false, false, true, false},
		{on("create", "PeerAuthentication"), false, false, true, false},
		{on("create", "RoleBinding"), false, false, true, false},
		{on("create", "ClusterRole"), false, false, false, false},
		{on("escalate", "Role"), false, false, false, false},
		{on("create", "ServiceAccount"), false, false, true, false},
		{on(authz.VerbRoute, "ServiceEntry"), false, false, true, false},
		{authz.Attributes{Verb: "get", Path: "/metrics"}, false, false, false, true},
		{authz.Attributes{Verb: "list", Group: "registry.istio.io", Resource: "problems"}, true, true, true, true},
		{authz.Attributes{Verb: "get", Group: "registry.istio.io", Resource: "standings"}, false, false, false, false},
		{authz.Attributes{Verb: "create", Group: "registry.istio.io", Resource: "authority", Subresource: "rotation"}, false, false, false, false},
	} {
		for name, want := range map[string]bool{authz.RoleView: tc.view, authz.RoleEdit: tc.edit, authz.RoleAdmin: tc.admin, authz.RoleMonitoring: tc.monitoring, authz.RoleClusterAdmin: true} {
			if got := roles.Authorize(t.Context(), identity.Identity{Name: name}, tc.a); got.Allowed != want {
				t.Errorf("%s, %s: %v, want %v", name, tc.a, got.Allowed, want)
			}
		}
	}
}

// manyRoles has 1,000 roles and 10,000 bindings, 10 of them of one user.
func manyRoles(t testing.TB) *authz.Roles {
	roles := &authz.Roles{}
	for n := range 1000 {
		roles.Put(schematest.Object(t, schema.KindRole, fmt.Sprint("n-", n%100), fmt.Sprint("r-", n), schema.RoleRules{Rules: []rbac.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"config.istio.io"}, Resources: []string{"routerules"}},
			{Verbs: []string{"update"}, APIGroups: []string{"networking.istio.io"}, Resources: []string{"virtualservices"}, ResourceNames: []string{"a", "b"}},
		}}))
	}
	for n := range 10_000 {
		user := fmt.Sprint("u-", n%1000)
		roles.Put(schematest.Object(t, schema.KindRoleBinding, fmt.Sprint("n-", n%100), fmt.Sprint("b-", n), schema.Binding{
			RoleRef: rbac.RoleRef{Kind: schema.KindRole, Name: fmt.Sprint("r-", n%1000)}, Subjects: []rbac.Subject{{Kind: rbac.UserKind, Name: user}},
		}))
	}
	return roles
}

// TestManyRoles checks the case of the benchmark.
func TestManyRoles(t *testing.T) {
	roles := manyRoles(t)
	for namespace, want := range map[string]bool{"n-7": true, "n-8": false} {
		a := authz.Attributes{Verb: "get", Group: "config.istio.io", Resource: "routerules", Namespace: namespace, Name: "x"}
		if got := roles.Authorize(t.Context(), identity.Identity{Name: "u-7"}, a); got.Allowed != want {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
}

func BenchmarkAuthorize(b *testing.B) {
	roles := manyRoles(b)
	who := identity.Identity{Name: "u-7", Groups: []string{"shop", identity.Authenticated}}
	for name, namespace := range map[string]string{"allowed": "n-7", "refused": "n-8"} {
		a := authz.Attributes{Verb: "get", Group: "config.istio.io", Resource: "routerules", Namespace: namespace, Name: "x"}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				roles.Authorize(b.Context(), who, a)
			}
		})
	}
	b.Run("after a change", func(b *testing.B) {
		changed := schematest.Object(b, schema.KindRole, "n-1", "r-1", schema.RoleRules{})
		for b.Loop() {
			roles.Put(changed)
			roles.Authorize(b.Context(), who, authz.Attributes{Verb: "get", Path: "/"})
		}
	})
}
