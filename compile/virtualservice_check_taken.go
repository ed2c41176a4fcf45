package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// A VirtualService loses callers if another object takes its host. That is a
// VirtualService for the host, or for a wildcard that covers it, in a namespace
// with precedence; or a ServiceEntry by which the host belongs to another
// namespace.

// checkTaken reports a host for which some callers do not follow the
// VirtualService, although it is exported to them and in a namespace that they
// follow. It returns some callers that do follow it, or nil if there are none.
func (d *check) checkTaken(vs *virtualService, at, host string) *viewpoint {
	audience := d.audience(vs, host)
	if len(audience) == 0 {
		return d.viewpoint // checkClaim reports that nobody follows it.
	}
	var follows, lost *viewpoint
	for _, callers := range audience {
		switch {
		case callers.virtualFor(host) == vs:
			if follows == nil {
				follows = callers
			}
		case lost == nil && d.sameHost(vs, host, callers):
			lost = callers
		}
		if follows != nil && lost != nil {
			break
		}
	}
	if follows == nil {
		if lost == nil {
			lost = audience[0]
		}
		d.conflict(diag.RuleClaimed, vs.ref, at, "no effect for sidecars: "+lost.taker(vs, host))
		return nil
	}
	if lost == nil && slices.ContainsFunc(audience, func(callers *viewpoint) bool { return callers.namespace == "" }) {
		lost = d.exception(vs, host)
	}
	if lost != nil {
		who := "in namespace " + lost.namespace
		if lost.namespace == "" {
			who = "in other namespaces"
		}
		d.notHonoured(diag.FollowedByFew, vs.ref, at, fmt.Sprintf("callers %s do not follow it: %s", who, lost.taker(vs, host)))
	}
	return follows
}

// sameHost reports whether a host is the same service to some callers as to those
// in the VirtualService's namespace. The rules for a service do not apply to
// another service with its host, but those of the root namespace apply to all.
func (v *viewpoint) sameHost(vs *virtualService, host string, callers *viewpoint) bool {
	return vs.ref.Namespace == v.settings.RootNamespace || callers.service(host) == v.service(host)
}

// audience returns the callers that follow the VirtualService for a host unless
// another object takes it. Those of its own namespace come first. Namespace ""
// stands for callers of any namespace that no object mentions.
func (v *viewpoint) audience(vs *virtualService, host string) []*viewpoint {
	home := vs.ref.Namespace
	switch owner := v.ownerOf(host); {
	case v.pilot().AnyNamespaceRules || v.pilot().ShortNamesByCaller:
		return []*viewpoint{v}
	case owner != home && home != v.settings.RootNamespace:
		if mesh.Exported(vs.exported, home, home) {
			return []*viewpoint{v}
		}
		return nil
	}
	var out []*viewpoint
	if mesh.Exported(vs.exported, home, home) {
		out = append(out, v)
	}
	if mesh.Exported(vs.exported, home, "") {
		return append(out, v.forDomain(""))
	}
	for _, namespace := range namespacesOf(vs.exported) {
		if namespace != home && len(out) < maxClaims {
			out = append(out, v.home(namespace))
		}
	}
	return out
}

// namespacesOf returns the namespaces that an exportTo names.
func namespacesOf(exportTo []string) []string {
	return slices.DeleteFunc(slices.Clone(exportTo), func(namespace string) bool { return namespace == "*" || namespace == "." })
}

// exception returns the first namespace whose callers do not follow a
// VirtualService that all others follow, or nil. It examines only namespaces that
// objects for the host mention.
func (v *viewpoint) exception(vs *virtualService, host string) *viewpoint {
	seen := map[string]bool{"": true, vs.ref.Namespace: true}
	check := func(namespaces ...string) *viewpoint {
		for _, namespace := range namespaces {
			if seen[namespace] {
				continue
			}
			seen[namespace] = true
			if callers := v.home(namespace); callers.virtualFor(host) != vs && v.sameHost(vs, host, callers) {
				return callers
			}
		}
		return nil
	}
	rivals := func(name string) *viewpoint {
		for _, rival := range v.virtualByHost.under(v.reader, name) {
			if rival == vs {
				continue
			}
			if found := check(append([]string{rival.ref.Namespace}, namespacesOf(rival.exported)...)...); found != nil {
				return found
			}
		}
		return nil
	}
	if found := rivals(host); found != nil || v.ownerOf(host) == vs.ref.Namespace {
		return found // Within a namespace no wildcard takes precedence over the host.
	}
	for wildcard := range wildcards(host) {
		if found := rivals(wildcard); found != nil {
			return found
		}
	}
	return nil
}

// taker says which object takes a host from the VirtualService for these callers,
// and why.
func (v *viewpoint) taker(vs *virtualService, host string) string {
	by := v.virtualFor(host)
	if by == nil {
		return fmt.Sprintf("for them %s belongs to namespace %s%s", host, v.ownerOf(host), v.declaredBy(host))
	}
	what := host + " too"
	if name := v.matched(by, host); name != host {
		what = fmt.Sprintf("%s, which covers %s,", name, host)
	}
	why := "is in the callers' own namespace"
	switch by.ref.Namespace {
	case vs.ref.Namespace:
		why = v.firstBecause()
	case v.ownerOf(host):
		why = "is in the host's own namespace"
	}
	if v.pilot().AnyNamespaceRules {
		why = v.firstBecause()
	}
	return fmt.Sprintf("%s is for %s and %s", by.ref, what, why)
}

// declaredBy names the object by which a host belongs to a namespace, or returns
// "".
func (v *viewpoint) declaredBy(host string) string {
	svc := v.service(host)
	if svc == nil {
		svc = v.reader.service(host)
	}
	if svc == nil {
		return ""
	}
	return fmt.Sprintf(": %s declares it", svc.Origin)
}

// matched returns the host, or the wildcard that covers it, through which these
// callers follow a VirtualService.
func (v *viewpoint) matched(vs *virtualService, host string) string {
	scope := v.virtualOf.scope(vs)
	if v.exactVirtual(scope, host) == vs {
		return host
	}
	for wildcard := range wildcards(host) {
		if v.exactVirtual(scope, wildcard) == vs {
			return wildcard
		}
	}
	return host
}

// checkTakenBeneath reports a wildcard that loses hosts to a VirtualService of
// another namespace that is no more precise. That namespace declares the hosts, so
// its rules have precedence. A more precise one is an exception that anyone may
// write, and is not reported.
func (d *check) checkTakenBeneath(vs *virtualService, at, wildcard string) {
	if d.pilot().AnyNamespaceRules {
		return
	}
	for _, callers := range []string{"", d.namespace} {
		for _, namespace := range d.takersBeneath.Get(d.r, wildcardFor{wildcard, callers}) {
			if namespace == vs.ref.Namespace {
				continue
			}
			if svc := d.takenBeneath(namespace, wildcard); svc != nil {
				d.notHonoured(diag.FollowedByFew, vs.ref, at, fmt.Sprintf("requests to %s do not follow it: %s", svc.Hostname, d.taker(vs, svc.Hostname)))
				return
			}
		}
	}
}

// takenBeneath returns a service of a namespace covered by a wildcard that follows
// a VirtualService of the namespace for this wildcard or a wider one, or nil.
func (v *viewpoint) takenBeneath(namespace, wildcard string) *mesh.Service {
	for _, svc := range v.registry.byNamespace.under(v.reader, namespace) {
		if !(imported{host: wildcard}).covers(svc.Hostname) || !svc.VisibleIn(v.namespace) {
			continue
		}
		by := v.virtualFor(svc.Hostname)
		if by != nil && by.ref.Namespace == namespace && (imported{host: v.matched(by, svc.Hostname)}).covers(wildcard) {
			return svc
		}
	}
	return nil
}

// wildcardFor is a wildcard in VirtualServices and the namespace that sees them, or
// "" for all.
type wildcardFor struct{ wildcard, callers string }

// wildcardsFor returns the wildcards in a VirtualService.
func (m *model) wildcardsFor(vs *virtualService) []wildcardFor {
	var out []wildcardFor
	for _, name := range m.virtualOf.names(vs) {
		if !strings.HasPrefix(name, "*") {
			continue
		}
		for _, callers := range m.virtualOf.callers(vs) {
			out = append(out, wildcardFor{name, callers})
		}
	}
	return out
}

// findWildcardNamespaces returns the namespaces of VirtualServices that have a
// wildcard.
func (rd *reader) findWildcardNamespaces(key wildcardFor) map[string]bool {
	out := map[string]bool{}
	for _, vs := range rd.virtualByWildcard.under(rd, key) {
		out[vs.ref.Namespace] = true
	}
	return out
}

// findTakersBeneath returns the namespaces that both declare hosts covered by a
// wildcard and have a VirtualService for it or a wider one, sorted. Few have both,
// so callers need not look at all that have one of the two.
func (rd *reader) findTakersBeneath(key wildcardFor) []string {
	var out []string
	for _, owner := range rd.ownersBeneath.Get(rd.r, key.wildcard) {
		for wider := range wildcards(strings.TrimPrefix(key.wildcard, "*")) {
			if rd.wildcardNamespaces.Get(rd.r, wildcardFor{wider, key.callers})[owner] {
				out = append(out, owner)
				break
			}
		}
	}
	return out
}

// findOwnersBeneath returns the namespaces of the services whose hosts a wildcard
// covers, sorted, each once.
func (rd *reader) findOwnersBeneath(wildcard string) []string {
	var out []string
	for _, svc := range rd.registry.beneath.under(rd, wildcard) {
		out = append(out, svc.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkConnectionsTaken reports a wildcard that no ServiceEntry declares, in a
// VirtualService without HTTP routes, if more precise VirtualServices take all
// services that it covers: it applies only to connections to these. It does not
// check a wildcard that covers more than maxClaims services.
func (d *check) checkConnectionsTaken(vs *virtualService, at, wildcard string) bool {
	if len(vs.http) > 0 || d.service(wildcard) != nil {
		return false
	}
	services := d.registry.beneath.under(d.reader, wildcard)
	if len(services) > maxClaims {
		return false
	}
	var taken *mesh.Service
	for _, svc := range slices.Concat(services, d.egressIn(d.namespace)) {
		if !(imported{host: wildcard}).covers(svc.Hostname) || !svc.VisibleIn(d.namespace) {
			continue
		}
		switch d.virtualFor(svc.Hostname) {
		case vs:
			return false
		case nil:
		default:
			taken = svc
		}
	}
	if taken == nil {
		return false
	}
	d.conflict(diag.RuleClaimed, vs.ref, at, fmt.Sprintf("no effect for sidecars: others are for all services that it covers, such as %s for %s", d.virtualFor(taken.Hostname).ref, taken.Hostname))
	return true
}
