package authz

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/identity"
)

// CheckWrite returns an error unless an identity may give the rights that a write gives.
// before is nil for an object that is new; after is what will be stored. beside are the
// other objects that the same transaction writes. As in Kubernetes, a user who writes a
// role must have its rights, or the verb escalate on it. A user who writes a binding must
// have the rights of its role, in the namespace of the binding, or the verb bind on it.
// This also applies to writes that change only labels or annotations.
func (r *Roles) CheckWrite(ctx context.Context, who identity.Identity, before, after *schema.Object, beside []*schema.Object) error {
	if after.Kind.Group != rbacAPI || who.In(identity.Masters) {
		return nil
	}
	spec, err := after.Spec()
	if err != nil {
		return fmt.Errorf("%s: %w", after.Key(), err)
	}
	switch spec := spec.(type) {
	case *schema.RoleRules:
		return r.checkRole(ctx, who, before, after, spec, beside)
	case *schema.Binding:
		return r.checkBinding(ctx, who, before, after, spec, beside)
	}
	return nil
}

func (r *Roles) checkRole(ctx context.Context, who identity.Identity, before, after *schema.Object, spec *schema.RoleRules, beside []*schema.Object) error {
	if unchanged(before, after) {
		return nil
	}
	if r.Authorize(ctx, who, On("escalate", after.Key())).Allowed {
		return nil
	}
	own := r.Rules(who, after.Meta.Namespace)
	if spec.AggregationRule != nil || aggregates(before) {
		if all, missing := validation.Covers(own, everything); !all {
			return escalates(who, after, "an aggregationRule gives the rules of roles that others write, so to write or remove it takes all rights", missing)
		}
	}
	// A changed label may make other roles have these rules, too.
	if all, missing := validation.Covers(own, r.with(beside).rulesAs(after)); !all {
		return escalates(who, after, "", missing)
	}
	return nil
}

func (r *Roles) checkBinding(ctx context.Context, who identity.Identity, before, after *schema.Object, spec *schema.Binding, beside []*schema.Object) error {
	if err := sameRole(before, after, spec); err != nil {
		return err
	}
	if unchanged(before, after) {
		return nil
	}
	key := roleKey(after.Meta.Namespace, spec.RoleRef)
	bind := On("bind", key)
	if bind.Namespace == "" {
		bind.Namespace = after.Meta.Namespace // bind on a ClusterRole may be had in a namespace.
	}
	if r.Authorize(ctx, who, bind).Allowed {
		return nil
	}
	x := r.with(beside)
	if x.roles[key] == nil {
		return apierrors.NewForbidden(resourceOf(after), after.Meta.Name, fmt.Errorf("user %q cannot bind %s, which is not there, without the verb bind", who.Name, key))
	}
	if all, missing := validation.Covers(r.Rules(who, after.Meta.Namespace), x.rulesOf(key)); !all {
		return escalates(who, after, "", missing)
	}
	return nil
}

// unchanged reports whether a write changes nothing of an object but what the server keeps for
// itself, and its finalizers.
func unchanged(before, after *schema.Object) bool {
	return before != nil && before.SameSpec(after) && maps.Equal(before.Meta.Labels, after.Meta.Labels) && maps.Equal(before.Meta.Annotations, after.Meta.Annotations)
}

// aggregates reports whether an object, which may be nil, has an aggregationRule.
func aggregates(o *schema.Object) bool {
	if o == nil {
		return false
	}
	of := roleOf(o)
	return of != nil && len(of.selectors) > 0
}

// sameRole returns an error if a binding has another role than before.
func sameRole(before, after *schema.Object, spec *schema.Binding) error {
	if before == nil {
		return nil
	}
	old, err := before.Spec()
	if err != nil {
		return nil // What cannot be read gives nothing, and may be replaced.
	}
	if was, ok := old.(*schema.Binding); ok && !equality.Semantic.DeepEqual(withGroup(was.RoleRef), withGroup(spec.RoleRef)) {
		return apierrors.NewForbidden(resourceOf(after), after.Meta.Name, fmt.Errorf("roleRef cannot change from %s %s: delete the binding and create another", was.RoleRef.Kind, was.RoleRef.Name))
	}
	return nil
}

// withGroup returns a reference with the group that it has if none is written.
func withGroup(ref rbac.RoleRef) rbac.RoleRef {
	ref.APIGroup = rbacAPI
	return ref
}

// with returns the present roles with those of a transaction in their place.
func (r *Roles) with(beside []*schema.Object) *index {
	written := map[schema.Key]*role{}
	for _, o := range beside {
		if of := roleOf(o); of != nil {
			written[o.Key()] = of
		}
	}
	now := r.present()
	if len(written) == 0 {
		return now
	}
	roles := maps.Clone(now.roles)
	maps.Copy(roles, written)
	return &index{roles: roles}
}

// rulesAs returns the rules of a role as it is written in an object.
func (x *index) rulesAs(o *schema.Object) []rbac.PolicyRule {
	of := roleOf(o)
	if of == nil {
		return everything // Nobody should be able to write it.
	}
	roles := maps.Clone(x.roles)
	roles[of.key] = of
	return (&index{roles: roles}).rulesOf(of.key)
}

func resourceOf(o *schema.Object) runtimeschema.GroupResource {
	return runtimeschema.GroupResource{Group: o.Kind.Group, Resource: o.Kind.Plural}
}

// escalates returns the error of Kubernetes for rights that an identity tries to give and
// does not have.
func escalates(who identity.Identity, o *schema.Object, why string, missing []rbac.PolicyRule) error {
	lines := make([]string, 0, len(missing))
	for _, rule := range missing {
		lines = append(lines, describe(rule))
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", who.Name, who.Groups, strings.Join(lines, "\n"))
	if why != "" {
		text += "\n(" + why + ")"
	}
	return apierrors.NewForbidden(resourceOf(o), o.Meta.Name, fmt.Errorf("%s", text))
}

// describe writes a rule as Kubernetes does.
func describe(rule rbac.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name string
		list []string
	}{{"APIGroups", rule.APIGroups}, {"Resources", rule.Resources}, {"ResourceNames", rule.ResourceNames}, {"NonResourceURLs", rule.NonResourceURLs}, {"Verbs", rule.Verbs}} {
		if len(part.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
