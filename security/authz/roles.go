package authz

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	rbac "k8s.io/api/rbac/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/identity"
)

// Roles decides by the roles and bindings that it was given. They have the meaning that
// they have in Kubernetes: rights only add up, a role that is missing gives none, and the
// group identity.Masters may do everything. The zero Roles has no roles, so it allows
// nothing to other groups. It is safe for concurrent use.
type Roles struct {
	mu       sync.Mutex
	roles    map[schema.Key]*role
	bindings map[schema.Key]*binding

	index atomic.Pointer[index] // nil after a change
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	key      schema.Key
	role     schema.Key
	subjects []rbac.Subject
}

// Put adds or replaces a role or binding. It ignores objects of other kinds.
func (r *Roles) Put(o *schema.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roles == nil {
		r.roles, r.bindings = map[schema.Key]*role{}, map[schema.Key]*binding{}
	}
	key := o.Key()
	switch o.Kind.Kind {
	case schema.KindRole, schema.KindClusterRole:
		if r.roles[key] = roleOf(o); r.roles[key] == nil {
			delete(r.roles, key)
		}
	case schema.KindRoleBinding, schema.KindClusterRoleBinding:
		if r.bindings[key] = bindingOf(o); r.bindings[key] == nil {
			delete(r.bindings, key)
		}
	default:
		return
	}
	r.index.Store(nil)
}

// Delete removes a role or binding.
func (r *Roles) Delete(key schema.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.roles, key)
	delete(r.bindings, key)
	r.index.Store(nil)
}

func bindingOf(o *schema.Object) *binding {
	spec, err := o.Spec()
	if err != nil {
		return nil
	}
	b, ok := spec.(*schema.Binding)
	if !ok {
		return nil
	}
	return &binding{o.Key(), roleKey(o.Meta.Namespace, b.RoleRef), b.Subjects}
}

// roleKey returns the key of the role that a binding of a namespace refers to.
func roleKey(namespace string, ref rbac.RoleRef) schema.Key {
	if ref.Kind == schema.KindClusterRole {
		namespace = schema.NoNamespace
	}
	return schema.Key{Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
}

// index finds what subjects have.
type index struct {
	roles map[schema.Key]*role
	// bound has what each subject has, first by its namespace: schema.NoNamespace for what it
	// has everywhere.
	bound map[subject]map[string][]*bound
}

// subject is a user or a group.
type subject struct {
	group bool
	name  string
}

// bound is a role that a subject has by a binding.
type bound struct {
	binding schema.Key
	role    schema.Key
	rules   []rbac.PolicyRule
	subject rbac.Subject
}

// present returns the index of the present roles and bindings.
func (r *Roles) present() *index {
	if known := r.index.Load(); known != nil {
		return known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.index.Load(); known != nil {
		return known
	}
	made := newIndex(r.roles, r.bindings)
	r.index.Store(made)
	return made
}

func newIndex(roles map[schema.Key]*role, bindings map[schema.Key]*binding) *index {
	x := &index{roles: make(map[schema.Key]*role, len(roles)), bound: map[subject]map[string][]*bound{}}
	for key, one := range roles {
		x.roles[key] = one
	}
	rules := map[schema.Key][]rbac.PolicyRule{}
	for _, b := range bindings {
		of, known := rules[b.role]
		if !known {
			of = x.rulesOf(b.role)
			rules[b.role] = of
		}
		for _, s := range b.subjects {
			x.add(subjectOf(s), b.key.Namespace, &bound{b.key, b.role, of, s})
		}
	}
	for _, byNamespace := range x.bound {
		for _, list := range byNamespace {
			slices.SortFunc(list, func(a, b *bound) int { return compareKeys(a.binding, b.binding) })
		}
	}
	return x
}

func compareKeys(a, b schema.Key) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

func (x *index) add(to subject, namespace string, b *bound) {
	if x.bound[to] == nil {
		x.bound[to] = map[string][]*bound{}
	}
	x.bound[to][namespace] = append(x.bound[to][namespace], b)
}

// subjectOf returns the user or group of a subject. A service account is a user.
func subjectOf(s rbac.Subject) subject {
	switch s.Kind {
	case rbac.GroupKind:
		return subject{true, s.Name}
	case rbac.ServiceAccountKind:
		return subject{false, AccountName(s.Namespace, s.Name)}
	}
	return subject{false, s.Name}
}

// AccountName returns the user name of a ServiceAccount.
func AccountName(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// AccountGroups returns the groups of the ServiceAccounts of a namespace.
func AccountGroups(namespace string) []string {
	return []string{identity.Accounts, identity.Accounts + ":" + namespace}
}

// rulesOf returns the rules of a role; nil if there is no such role. Those of a role that
// aggregates are those of the roles that it selects. As in a cluster, which replaces the
// others, its own count only as long as it selects none.
func (x *index) rulesOf(key schema.Key) []rbac.PolicyRule {
	return x.rulesBeyond(key, map[schema.Key]bool{})
}

// rulesBeyond is rulesOf without the roles that were seen already.
func (x *index) rulesBeyond(key schema.Key, seen map[schema.Key]bool) []rbac.PolicyRule {
	of := x.roles[key]
	if of == nil || seen[key] {
		return nil
	}
	seen[key] = true
	if len(of.selectors) == 0 {
		return of.rules
	}
	var rules []rbac.PolicyRule
	for other, one := range x.roles {
		if other.Kind != schema.KindClusterRole {
			continue
		}
		for _, selector := range of.selectors {
			if selector.Matches(one.labels) {
				rules = append(rules, x.rulesBeyond(other, seen)...)
				break
			}
		}
	}
	if len(rules) == 0 {
		return of.rules
	}
	return rules
}

// each calls visit with what an identity has in a namespace, and everywhere. With "" that is
// only the latter. It stops when visit returns false.
func (x *index) each(who identity.Identity, namespace string, visit func(*bound) bool) {
	of := func(s subject) bool {
		byNamespace := x.bound[s]
		for _, in := range []string{schema.NoNamespace, namespace} {
			if in == "" {
				continue
			}
			for _, b := range byNamespace[in] {
				if !visit(b) {
					return false
				}
			}
		}
		return true
	}
	if !of(subject{false, who.Name}) {
		return
	}
	for _, group := range who.Groups {
		if !of(subject{true, group}) {
			return
		}
	}
}

// Authorize implements Authorizer.
func (r *Roles) Authorize(_ context.Context, who identity.Identity, a Attributes) (d Decision) {
	if who.In(identity.Masters) {
		return Decision{Allowed: true, Reason: "members of " + identity.Masters + " may do everything"}
	}
	r.present().each(who, a.Namespace, func(b *bound) bool {
		for i := range b.rules {
			if allows(&b.rules[i], a) {
				d = Decision{Allowed: true, Reason: b.reason()}
				return false
			}
		}
		return true
	})
	return d
}

// reason says why something is allowed, in the words of Kubernetes.
func (b *bound) reason() string {
	in := fmt.Sprintf("%q", b.binding.Name)
	if b.binding.Namespace != schema.NoNamespace {
		in = fmt.Sprintf("%q", b.binding.Name+"/"+b.binding.Namespace)
	}
	name := fmt.Sprintf("%s %q", b.subject.Kind, b.subject.Name)
	if b.subject.Kind == rbac.ServiceAccountKind {
		name = fmt.Sprintf("%s %q", b.subject.Kind, b.subject.Name+"/"+b.subject.Namespace)
	}
	return fmt.Sprintf("RBAC: allowed by %s %s of %s %q to %s", b.binding.Kind, in, b.role.Kind, b.role.Name, name)
}

// everything allows everything.
var everything = []rbac.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Rules returns the rules of an identity in a namespace, with those that it has everywhere.
// With "" it returns only the latter. The caller must not change them.
func (r *Roles) Rules(who identity.Identity, namespace string) []rbac.PolicyRule {
	return r.present().rulesFor(who, namespace)
}

func (x *index) rulesFor(who identity.Identity, namespace string) (rules []rbac.PolicyRule) {
	if who.In(identity.Masters) {
		return everything
	}
	x.each(who, namespace, func(b *bound) bool {
		rules = append(rules, b.rules...)
		return true
	})
	return rules
}
