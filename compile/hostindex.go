package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// claim is a rule for hosts that only some callers may see.
type claim interface {
	origin() declared
	exportTo() []string
	// selector returns the labels of the callers in its namespace that the rule
	// applies to, or nil if it applies to all that see it.
	selector() mesh.Labels
}

// hostIndex indexes the rules of one kind by their namespace, the hosts that they
// name, and the callers that see them. So a change of a rule for a few callers does
// not affect the others.
type hostIndex[T any] struct {
	m     *model
	claim func(*T) claim
	hosts func(*T) []string
	in    *index[claimed, T]
	// exposures has the exposure of all rules that name a host; nil if there are none.
	exposures *query.Input[string, *exposure]
	wild      *query.Input[string, bool] // namespaces of rules with a wildcard
	// imported is set if a Sidecar limits which namespaces' rules callers follow.
	imported bool

	indexes []func([]change[T])
}

// claimed is a host named by rules of a namespace. In a mesh where every rule
// applies everywhere, all rules are under namespace "". Short names are kept apart,
// so that one index serves the proxies of all domains.
type claimed struct {
	namespace, host string
	short           bool
	callers         string // namespace whose callers see the rules; "" for all
}

// newHostIndex indexes rules by the hosts that they name. Rules that select their
// callers come first; then tie-break order decides.
func newHostIndex[T any](m *model, of func(*T) claim, hosts func(*T) []string) *hostIndex[T] {
	c := &hostIndex[T]{m: m, claim: of, hosts: hosts}
	compare := func(a, b *T) int {
		first, second := of(a), of(b)
		switch selecting := first.selector() != nil; {
		case selecting == (second.selector() != nil):
			return m.inAgeOrder(first.origin(), second.origin())
		case selecting:
			return -1
		}
		return 1
	}
	c.in = newIndex(m.graph, compare, c.claimed)
	named := newIndex(m.graph, compare, c.names)
	c.exposures = summarized(named, (*exposure).equal, c.exposure)
	wild := newIndex(m.graph, compare, func(rule *T) []string {
		if slices.ContainsFunc(hosts(rule), func(name string) bool { return strings.HasPrefix(name, "*") }) {
			return []string{c.scope(rule)}
		}
		return nil
	})
	c.wild = summarized(wild, equal, func(rules []*T) bool { return len(rules) > 0 })
	c.indexes = []func([]change[T]){c.in.update, named.update, wild.update}
	return c
}

func (c *hostIndex[T]) update(changes []change[T]) {
	for _, update := range c.indexes {
		update(changes)
	}
}

func (c *hostIndex[T]) claimed(rule *T) []claimed {
	var out []claimed
	for _, name := range c.names(rule) {
		for _, callers := range c.callers(rule) {
			out = append(out, claimed{c.scope(rule), name, isShort(name), callers})
		}
	}
	return out
}

// maxClaims is how many index entries a rule may have for its callers.
const maxClaims = 1024

// callers returns the namespaces that see a rule, or "" for all. A rule with many
// hosts for many namespaces is indexed for all callers, but only those that see it
// follow it.
func (c *hostIndex[T]) callers(rule *T) []string {
	of := c.claim(rule)
	home := of.origin().ref.Namespace
	switch {
	case of.selector() != nil:
		return []string{home}
	case c.seenByAll(of) || times(len(c.hosts(rule)), len(of.exportTo())) > maxClaims:
		return []string{""}
	}
	var out []string
	for _, namespace := range append([]string{home}, of.exportTo()...) {
		if mesh.Exported(of.exportTo(), home, namespace) && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	return out
}

// seenByAll reports whether callers in all namespaces see a rule.
func (c *hostIndex[T]) seenByAll(of claim) bool {
	return c.m.pilot().AnyNamespaceRules || mesh.Exported(of.exportTo(), of.origin().ref.Namespace, "")
}

// names returns the hosts of a rule. Short names are completed unless that is left
// to the callers.
func (c *hostIndex[T]) names(rule *T) []string {
	var out []string
	for _, name := range c.hosts(rule) {
		out = append(out, c.m.unlessByCaller(name, c.claim(rule).origin().ref.Namespace))
	}
	return out
}

func (c *hostIndex[T]) scope(rule *T) string {
	if c.m.pilot().AnyNamespaceRules {
		return ""
	}
	return c.claim(rule).origin().ref.Namespace
}

// find returns the match for a host in the first of the namespaces that has one.
// Within a namespace, the host itself comes first, then wildcards, the longest
// first.
func find[T, V any](c *hostIndex[T], v *viewpoint, host string, namespaces []string, exact func(namespace, host string) *V) *V {
	for _, namespace := range namespaces {
		if found := exact(namespace, host); found != nil {
			return found
		}
		if !c.wild.Get(v.r, namespace) {
			continue
		}
		for wildcard := range wildcards(host) {
			if found := exact(namespace, wildcard); found != nil {
				return found
			}
		}
	}
	return nil
}

// lists returns the rules of a namespace that name exactly this host or wildcard
// and that the callers see. A rule may use the whole name, or a short one that the
// callers' domain completes. No list is empty; all are shared.
func (c *hostIndex[T]) lists(v *viewpoint, namespace, host string) [][]*T {
	var out [][]*T
	add := func(name string) {
		at := claimed{namespace: namespace, host: name, short: isShort(name)}
		for _, at.callers = range slices.Compact([]string{"", v.namespace}) {
			if list := c.in.under(v.reader, at); len(list) > 0 {
				out = append(out, list)
			}
		}
	}
	if !isShort(host) {
		add(host)
	}
	if name, rest, dotted := strings.Cut(host, "."); dotted && rest == v.domain && c.m.pilot().ShortNamesByCaller {
		add(name)
	}
	return out
}

// first returns the first rule in some lists that these callers follow, or nil.
func (c *hostIndex[T]) first(v *viewpoint, lists [][]*T) *T {
	var found *T
	for _, list := range lists {
		at := slices.IndexFunc(list, func(rule *T) bool { return c.followed(v, rule) })
		if at >= 0 && (found == nil || c.in.compare(list[at], found) < 0) {
			found = list[at]
		}
	}
	return found
}

// all returns the rules in some lists that these callers follow, each once.
func (c *hostIndex[T]) all(v *viewpoint, lists [][]*T) []*T {
	var out []*T
	for _, list := range lists {
		for _, rule := range list {
			if c.followed(v, rule) {
				out = append(out, rule)
			}
		}
	}
	slices.SortStableFunc(out, c.in.compare)
	return slices.Compact(out)
}

// followed reports whether these callers follow a rule: the rule does not select
// other callers, and their Sidecar lets them follow it.
func (c *hostIndex[T]) followed(v *viewpoint, rule *T) bool {
	of := c.claim(rule)
	if of.selector() != nil && !v.selection.has(of.origin().ref.Name) {
		return false
	}
	home := of.origin().ref.Namespace
	if !c.m.pilot().AnyNamespaceRules && !mesh.Exported(of.exportTo(), home, v.namespace) {
		return false // It has so many hosts and namespaces that it is indexed for all callers.
	}
	return !c.imported || !v.sidecar.limits() || v.sidecar.follows(home, c.names(rule))
}

// wildcards returns the wildcards that cover a host, the longest first.
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

// ownerOf returns the namespace that a host belongs to: that of the object that
// declares it, else the one in its name, else "".
func (rd *reader) ownerOf(host string) string {
	if svc := rd.service(host); svc != nil {
		return svc.Namespace
	}
	return mesh.NamespaceOf(host, rd.settings.Domain)
}

// ownerOf returns the namespace that a host belongs to as these callers see it. A
// service that they do not see decides nothing for them.
func (v *viewpoint) ownerOf(host string) string {
	if svc := v.service(host); svc != nil {
		return svc.Namespace
	}
	return mesh.NamespaceOf(host, v.settings.Domain)
}

// virtualNamespaces returns the namespaces whose VirtualServices may route requests
// to a host, in order: the host's own, the callers', the root namespace.
func (v *viewpoint) virtualNamespaces(host string) []string {
	return v.scopes(v.ownerOf(host), v.namespace)
}

// ruleNamespaces returns the namespaces whose DestinationRules may apply to a host,
// in Istio's order: the callers', the host's own, the root namespace.
func (v *viewpoint) ruleNamespaces(host string) []string {
	return v.scopes(v.namespace, v.ownerOf(host))
}

func (v *viewpoint) scopes(first, second string) []string {
	if v.pilot().AnyNamespaceRules {
		return []string{""}
	}
	out := []string{first, second, v.settings.RootNamespace}
	return slices.DeleteFunc(out, func(namespace string) bool { return namespace == "" })
}

// checkService also reports a host that is not visible to these callers.
func (d *check) checkService(ref diag.Ref, field, host, consequence string) bool {
	svc := d.plan.service(host)
	if svc == nil || d.service(host) != nil {
		return d.plan.checkService(ref, field, host, consequence)
	}
	d.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.HostNotExported, Object: ref, Field: field,
		Value:   fmt.Sprintf("%q", host),
		Message: fmt.Sprintf("%s does not export this host to namespace %s, %s", svc.Origin, d.namespace, consequence),
	})
	return false
}

// checkClaim reports a rule that fewer callers follow than it is exported to.
func (d *check) checkClaim(rule claim, at, host string) {
	ref, owner := rule.origin().ref, d.ownerOf(host)
	if !d.foreign(ref.Namespace, owner) {
		return
	}
	if !mesh.Exported(rule.exportTo(), ref.Namespace, ref.Namespace) {
		d.notHonoured(diag.FollowedByFew, ref, at, fmt.Sprintf("no caller follows it: %s belongs to namespace %s, so only callers in namespace %s would, and exportTo leaves them out%s", host, owner, ref.Namespace, d.declaredBy(host)))
	} else if !slices.Equal(rule.exportTo(), []string{"."}) && !slices.Equal(rule.exportTo(), []string{ref.Namespace}) {
		d.notHonoured(diag.FollowedByFew, ref, at, fmt.Sprintf("only callers in namespace %s follow it: %s belongs to namespace %s%s", ref.Namespace, host, owner, d.declaredBy(host)))
	}
}
