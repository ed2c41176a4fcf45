package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// claim is a rule for hosts, with who sees it.
type claim interface {
	origin() declared
	exportTo() []string
}

// claims are the rules of one kind, by the namespace that they are in and the
// hosts that they name.
type claims[T any] struct {
	m     *model
	of    func(*T) claim
	hosts func(*T) []string
	in    *index[claimed, T]
	// named has the rules of all namespaces by the hosts that they name.
	named *index[string, T]
	wild  *index[string, T] // those with a wildcard, by namespace
	// imported: a Sidecar says whose are followed.
	imported bool
}

// claimed is a host in the rules of a namespace; those of all are under "" in a
// mesh where every rule holds everywhere. Short names stand apart, so that one
// index serves the proxies of all domains.
type claimed struct {
	namespace, host string
	short           bool
}

// newClaims indexes rules in tie-break order by the hosts that they name.
func newClaims[T any](m *model, of func(*T) claim, hosts func(*T) []string) *claims[T] {
	c := &claims[T]{m: m, of: of, hosts: hosts}
	compare := func(a, b *T) int { return m.inAgeOrder(of(a).origin(), of(b).origin()) }
	c.in = newIndex(m.graph, compare, func(rule *T) []claimed {
		var out []claimed
		for _, name := range c.names(rule) {
			out = append(out, claimed{c.scope(rule), name, isShort(name)})
		}
		return out
	})
	c.named = newIndex(m.graph, compare, c.names)
	c.wild = newIndex(m.graph, compare, func(rule *T) []string {
		if slices.ContainsFunc(hosts(rule), func(name string) bool { return strings.HasPrefix(name, "*") }) {
			return []string{c.scope(rule)}
		}
		return nil
	})
	return c
}

func (c *claims[T]) update(changes []change[T]) {
	c.in.update(changes)
	c.named.update(changes)
	c.wild.update(changes)
}

// names of hosts, completed unless that is left to the callers.
func (c *claims[T]) names(rule *T) []string {
	var out []string
	for _, name := range c.hosts(rule) {
		out = append(out, c.m.unlessByCaller(name, c.of(rule).origin().ref.Namespace))
	}
	return out
}

func (c *claims[T]) scope(rule *T) string {
	if c.m.pilot().AnyNamespaceRules {
		return ""
	}
	return c.of(rule).origin().ref.Namespace
}

// find is the rule that holds for a host where these callers are: of the first
// of the namespaces that has any. The host itself comes first, then wildcards,
// the longest first.
func (c *claims[T]) find(d *domainPlan, host string, namespaces []string) *T {
	for _, namespace := range namespaces {
		if found := c.first(d, namespace, host); found != nil {
			return found
		}
		if len(c.wild.under(d.plan, namespace)) == 0 {
			continue
		}
		for wildcard := range wildcards(host) {
			if found := c.first(d, namespace, wildcard); found != nil {
				return found
			}
		}
	}
	return nil
}

// exact is the rule for this very host, or wildcard.
func (c *claims[T]) exact(d *domainPlan, host string, namespaces []string) *T {
	for _, namespace := range namespaces {
		if found := c.first(d, namespace, host); found != nil {
			return found
		}
	}
	return nil
}

// first rule of a namespace for this very host that these callers see, by its
// whole name or by a short one that their domain completes.
func (c *claims[T]) first(d *domainPlan, namespace, host string) *T {
	var found *T
	if !isShort(host) {
		found = c.seen(d, claimed{namespace, host, false})
	}
	name, rest, dotted := strings.Cut(host, ".")
	if !dotted || rest != d.domain || !c.m.pilot().ShortNamesByCaller {
		return found
	}
	short := c.seen(d, claimed{namespace, name, true})
	if found == nil || short != nil && c.in.compare(short, found) < 0 {
		return short
	}
	return found
}

func (c *claims[T]) seen(d *domainPlan, at claimed) *T {
	for _, rule := range c.in.under(d.plan, at) {
		of := c.of(rule)
		if c.imported && !d.sidecar.follows(of.origin().ref.Namespace, c.names(rule), d.namespace) {
			continue
		}
		if d.pilot().AnyNamespaceRules || mesh.Exported(of.exportTo(), of.origin().ref.Namespace, d.namespace) {
			return rule
		}
	}
	return nil
}

// differs reports whether callers of different namespaces may have different
// rules for a host.
func (c *claims[T]) differs(p *plan, host string) bool {
	if p.pilot().AnyNamespaceRules {
		return false
	}
	common, owner := "", p.ownerOf(host)
	check := func(name string) bool {
		rules := c.named.under(p, name)
		if len(rules) == 0 {
			return false
		}
		namespace := c.alone(rules)
		settled := namespace != "" && (namespace == owner || namespace == p.settings.RootNamespace) && (common == "" || namespace == common)
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

// alone is the namespace of all these rules, "" for several or when some are
// not for everybody.
func (c *claims[T]) alone(rules []*T) string {
	namespace := c.of(rules[0]).origin().ref.Namespace
	for _, rule := range rules {
		of := c.of(rule)
		if of.origin().ref.Namespace != namespace || !mesh.Exported(of.exportTo(), namespace, "") {
			return ""
		}
	}
	return namespace
}

// wildcards that a host falls under, the longest first.
func wildcards(host string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := strings.IndexByte(host, '.'); at >= 0; {
			if !yield("*" + host[at:]) {
				return
			}
			next := strings.IndexByte(host[at+1:], '.')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		yield("*")
	}
}

// ownerOf is the namespace that a host belongs to: that of the object which
// declares it, else the one in its name; "" when neither says.
func (p *plan) ownerOf(host string) string {
	if svc := p.service(host); svc != nil {
		return svc.Namespace
	}
	return mesh.NamespaceOf(host, p.settings.Domain)
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
	out := []string{first, second, d.settings.RootNamespace}
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
	ref, owner := rule.origin().ref, d.ownerOf(host)
	if d.pilot().AnyNamespaceRules || owner == "" || owner == ref.Namespace || ref.Namespace == d.settings.RootNamespace {
		return
	}
	if !mesh.Exported(rule.exportTo(), ref.Namespace, ref.Namespace) {
		d.notHonoured(ref, at, fmt.Sprintf("nobody follows it: %s belongs to namespace %s, so only callers in namespace %s would, and exportTo leaves them out", host, owner, ref.Namespace))
	} else if !slices.Equal(rule.exportTo(), []string{"."}) && !slices.Equal(rule.exportTo(), []string{ref.Namespace}) {
		d.notHonoured(ref, at, fmt.Sprintf("only callers in namespace %s follow it: %s belongs to namespace %s", ref.Namespace, host, owner))
	}
}
