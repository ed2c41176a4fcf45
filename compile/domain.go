package compile

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/mesh"
)

// domainPlan is what the networking kinds mean to proxies of one domain, which
// completes their short names. It caches nothing, because callers may send any
// domain.
type domainPlan struct {
	*plan
	domain    string
	namespace string // namespace of the callers; "" if the domain does not say
	// sidecar is the Sidecar that the callers follow, or nil.
	sidecar *sidecar
	// selection is the set of DestinationRules that select the callers.
	selection selection
}

func (p *plan) forDomain(domain string) *domainPlan {
	return &domainPlan{plan: p, domain: domain, namespace: mesh.NamespaceOf(domain, p.settings.Domain)}
}

// forScope returns the plan for proxies of a scope.
func (p *plan) forScope(s scope) *domainPlan {
	d := p.forDomain(s.domain)
	d.sidecar, d.selection = s.sidecar, s.selection
	return d
}

// home returns the plan for proxies in a namespace about which nothing else is
// known.
func (p *plan) home(namespace string) *domainPlan { return p.homeWith(namespace, mesh.Labels{}) }

// homeOf returns the domain of proxies in the namespace.
func (m *model) homeOf(namespace string) string {
	return namespace + ".svc." + m.settings.Domain
}

// exceptedByDestination returns the callers whom a VirtualService may send to other
// destinations, or by other rules, than the rest.
func (rd *reader) exceptedByDestination(vs *virtualService) exceptions {
	var out exceptions
	add := func(to *networking.Destination, namespace string) {
		out = out.with(rd.destinationOf(rd.unlessByCaller(to.GetHost(), namespace)))
	}
	for _, r := range rd.httpRoutesOf(vs) {
		for _, to := range r.destinations() {
			add(to, r.of.ref.Namespace)
		}
	}
	for _, to := range vs.tcpDestinations() {
		add(to, vs.ref.Namespace)
	}
	return out
}

// unlessByCaller completes a short name used by an object in this namespace, unless
// that is left to the callers.
func (m *model) unlessByCaller(name, namespace string) string {
	if m.pilot().ShortNamesByCaller {
		return name
	}
	return completed(name, m.homeOf(namespace))
}

// destinationOf returns the callers for whom a destination, or the rule that
// defines its subsets, may be another one than for the rest.
func (rd *reader) destinationOf(host string) exceptions {
	if isShort(host) {
		return everyone
	}
	if svc := rd.service(host); svc != nil && !svc.VisibleIn("") {
		return everyone
	}
	if first, _, _ := strings.Cut(host, "."); rd.settingsOf.exposures.Get(rd.r, first) != nil {
		return everyone
	}
	return rd.settingsExcept.Get(rd.r, host)
}

// service returns the service that these callers see under a host, or nil.
func (d *domainPlan) service(host string) *mesh.Service { return d.seenBy(d.namespace, host) }

// complete returns the full host that a name used by an object in this namespace
// means.
func (d *domainPlan) complete(name, namespace string) string {
	return completed(d.unlessByCaller(name, namespace), d.domain)
}

func completed(name, domain string) string {
	if !isShort(name) {
		return name
	}
	return name + "." + domain
}

func isShort(name string) bool { return name != "" && !strings.ContainsAny(name, ".*") }

func (d *domainPlan) virtualFor(host string) *virtualService {
	return find(d.virtualOf, d, host, d.virtualNamespaces(host), d.exactVirtual)
}

// exactVirtual returns the first VirtualService of a namespace for exactly this
// host or wildcard, or nil.
func (d *domainPlan) exactVirtual(namespace, host string) *virtualService {
	return d.virtualOf.first(d, d.virtualOf.lists(d, namespace, host))
}

// routesTo returns the planned routes of an HTTP port. A VirtualService replaces
// all RouteRules.
func (d *domainPlan) routesTo(svc *mesh.Service, port *mesh.Port) []plannedRoute {
	at := servicePort{svc, port}
	vs := d.virtualFor(svc.Hostname)
	if vs == nil && svc.Undeclared {
		return nil
	}
	if vs == nil || !port.Protocol.IsHTTP() && !svc.Egress {
		return d.routes.Get(d.r, at)
	}
	return d.httpLayout.Get(d.r, d.layoutOf(vs, at))
}

// tcpRoutesTo returns the routes that a VirtualService has for a port whose
// requests are not routed one by one.
func (d *domainPlan) tcpRoutesTo(svc *mesh.Service, port *mesh.Port) []plannedTCP {
	vs := d.virtualFor(svc.Hostname)
	if vs == nil || svc.Egress {
		return nil
	}
	return d.tcpLayout.Get(d.r, d.layoutOf(vs, servicePort{svc, port}))
}

// layoutKey is a VirtualService and a port to which it routes, for callers of a
// domain that the same DestinationRules select.
type layoutKey struct {
	vs        *virtualService
	at        servicePort
	domain    string
	selection selection
}

// layoutOf returns the key for these callers. Callers that no exception names share
// a key.
func (d *domainPlan) layoutOf(vs *virtualService, at servicePort) layoutKey {
	apart := d.destinationExcept.Get(d.r, vs)
	if apart.has(d.namespace) || at.service.Undeclared && d.hasSeveral(at.service.Hostname) {
		return layoutKey{vs, at, d.domain, d.selection}
	}
	if apart.has(vs.ref.Namespace) {
		return layoutKey{vs: vs, at: at}
	}
	return layoutKey{vs: vs, at: at, domain: d.homeOf(vs.ref.Namespace)}
}
