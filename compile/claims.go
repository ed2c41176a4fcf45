package compile

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// claim is a rule for hosts, with who sees it.
type claim interface {
	origin() diag.Ref
	exportTo() []string
}

// claims are the rules of one kind, by the namespace that they are in.
type claims[T any] struct {
	of func(*T) claim
	// in has the rules of a namespace; those of all under "" in a mesh where
	// every rule holds everywhere.
	in map[string]*hostIndex[T]
	// alone is the namespace of all rules with a name, "" for several or when
	// some are not for everybody.
	alone map[string]string
}

// newClaims indexes rules, given in tie-break order, by the hosts that they
// name.
func newClaims[T any](p *plan, rules []*T, of func(*T) claim, hosts func(*T) []string) claims[T] {
	c := claims[T]{of: of, in: map[string]*hostIndex[T]{}, alone: map[string]string{}}
	for i, rule := range rules {
		namespace := of(rule).origin().Namespace
		scope := namespace
		if p.pilot().AnyNamespaceRules {
			scope = ""
		}
		if c.in[scope] == nil {
			c.in[scope] = newHostIndex(rules)
		}
		if !mesh.Exported(of(rule).exportTo(), namespace, "") {
			namespace = ""
		}
		for _, name := range hosts(rule) {
			name = p.unlessByCaller(name, of(rule).origin().Namespace)
			c.in[scope].add(name, i)
			if first, ok := c.alone[name]; ok && first != namespace {
				namespace = ""
			}
			c.alone[name] = namespace
		}
	}
	return c
}

// find is the rule that holds for a host where these callers are: of the first
// of the namespaces that has any.
func (c claims[T]) find(d *domainPlan, host string, namespaces []string) *T {
	for _, namespace := range namespaces {
		if index := c.in[namespace]; index != nil {
			if found := index.find(host, d.domain, c.seen(d)); found != nil {
				return found
			}
		}
	}
	return nil
}

// exact is the rule for this very host, or wildcard.
func (c claims[T]) exact(d *domainPlan, host string, namespaces []string) *T {
	for _, namespace := range namespaces {
		if index := c.in[namespace]; index != nil {
			if found := index.exact(host, d.domain, c.seen(d)); found != nil {
				return found
			}
		}
	}
	return nil
}

func (c claims[T]) seen(d *domainPlan) func(*T) bool {
	return func(rule *T) bool {
		of := c.of(rule)
		return d.pilot().AnyNamespaceRules || mesh.Exported(of.exportTo(), of.origin().Namespace, d.namespace)
	}
}

// differs reports whether callers of different namespaces may have different
// rules for a host.
func (c claims[T]) differs(p *plan, host string) bool {
	if p.pilot().AnyNamespaceRules {
		return false
	}
	common, owner := "", p.ownerOf(host)
	check := func(name string) bool {
		namespace, named := c.alone[name]
		if !named {
			return false
		}
		settled := namespace != "" && (namespace == owner || namespace == p.snap.Settings.RootNamespace) && (common == "" || namespace == common)
		common = namespace
		return !settled
	}
	if check(host) {
		return true
	}
	for wildcard := range wildcards(host) {
		if check(wildcard) {
			return true
		}
	}
	return false
}

// ownerOf is the namespace that a host belongs to: that of the object which
// declares it, else the one in its name; "" when neither says.
func (p *plan) ownerOf(host string) string {
	if svc := p.service(host); svc != nil {
		return svc.Namespace
	}
	return mesh.NamespaceOf(host, p.snap.Settings.Domain)
}

// ownerOf is the namespace that a host belongs to where these callers are.
func (d *domainPlan) ownerOf(host string) string {
	if svc := d.service(host); svc != nil {
		return svc.Namespace
	}
	return d.plan.ownerOf(host)
}

// virtualNamespaces are those whose VirtualServices may route requests for a
// host: first its own, then the callers', then the root namespace.
func (d *domainPlan) virtualNamespaces(host string) []string {
	return d.scopes(d.ownerOf(host), d.namespace)
}

// ruleNamespaces are those whose DestinationRules may say how a host is
// reached, in Istio's order: the callers', its own, the root namespace.
func (d *domainPlan) ruleNamespaces(host string) []string {
	return d.scopes(d.namespace, d.ownerOf(host))
}

func (d *domainPlan) scopes(first, second string) []string {
	if d.pilot().AnyNamespaceRules {
		return []string{""}
	}
	out := []string{first, second, d.snap.Settings.RootNamespace}
	return slices.DeleteFunc(out, func(namespace string) bool { return namespace == "" })
}

// checkService reports also a host that is kept from these callers.
func (d *domainPlan) checkService(ref diag.Ref, field, host, consequence string) bool {
	svc := d.plan.service(host)
	if svc == nil || d.service(host) != nil {
		return d.plan.checkService(ref, field, host, consequence)
	}
	d.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Object: ref, Field: field,
		Value:   fmt.Sprintf("%q", host),
		Message: fmt.Sprintf("%s does not export this host to namespace %s, %s", svc.Origin, d.namespace, consequence),
	})
	return false
}

// checkClaim reports a rule that fewer callers follow than it is exported to.
func (d *domainPlan) checkClaim(rule claim, at, host string) {
	ref, owner := rule.origin(), d.ownerOf(host)
	if d.pilot().AnyNamespaceRules || owner == "" || owner == ref.Namespace || ref.Namespace == d.snap.Settings.RootNamespace {
		return
	}
	if !mesh.Exported(rule.exportTo(), ref.Namespace, ref.Namespace) {
		d.notHonoured(ref, at, fmt.Sprintf("nobody follows it: %s belongs to namespace %s, so only callers in namespace %s would, and exportTo leaves them out", host, owner, ref.Namespace))
	} else if !slices.Equal(rule.exportTo(), []string{"."}) && !slices.Equal(rule.exportTo(), []string{ref.Namespace}) {
		d.notHonoured(ref, at, fmt.Sprintf("only callers in namespace %s follow it: %s belongs to namespace %s", ref.Namespace, host, owner))
	}
}
