package compile

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/mesh"
)

// A viewpoint says whose requests a computation is about, and what these callers see:
// which services, which rules, and what short names mean to them. It reads the model
// and cannot report problems. It caches nothing, because callers may send any domain.
type viewpoint struct {
	*reader
	domain    string
	namespace string // namespace of the callers; "" if the domain does not say
	// sidecar is the Sidecar that the callers follow, or nil.
	sidecar *sidecar
	// selection is the set of DestinationRules that select the callers.
	selection selection
}

func (rd *reader) forDomain(domain string) *viewpoint {
	return &viewpoint{reader: rd, domain: domain, namespace: mesh.NamespaceOf(domain, rd.settings.Domain)}
}

// forScope returns the viewpoint of proxies of a scope.
func (rd *reader) forScope(s scope) *viewpoint {
	v := rd.forDomain(s.domain)
	v.sidecar, v.selection = s.sidecar, s.selection
	return v
}

// home returns the viewpoint of proxies in a namespace about which nothing else is
// known.
func (rd *reader) home(namespace string) *viewpoint { return rd.homeWith(namespace, mesh.Labels{}) }

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
			add(to, r.virtual.ref.Namespace)
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
func (v *viewpoint) service(host string) *mesh.Service { return v.seenBy(v.namespace, host) }

// complete returns the full host that a name used by an object in this namespace
// means.
func (v *viewpoint) complete(name, namespace string) string {
	return completed(v.unlessByCaller(name, namespace), v.domain)
}

func completed(name, domain string) string {
	if !isShort(name) {
		return name
	}
	return name + "." + domain
}

func isShort(name string) bool { return name != "" && !strings.ContainsAny(name, ".*") }

func (v *viewpoint) virtualFor(host string) *virtualService {
	return find(v.virtualOf, v, host, v.virtualNamespaces(host), v.exactVirtual)
}

// exactVirtual returns the first VirtualService of a namespace for exactly this
// host or wildcard, or nil.
func (v *viewpoint) exactVirtual(namespace, host string) *virtualService {
	return v.virtualOf.first(v, v.virtualOf.lists(v, namespace, host))
}

// routesTo returns the planned routes of an HTTP port. A VirtualService replaces
// all RouteRules.
func (v *viewpoint) routesTo(svc *mesh.Service, port *mesh.Port) []plannedRoute {
	at := servicePort{svc, port}
	vs := v.virtualFor(svc.Hostname)
	if vs == nil && svc.Undeclared {
		return nil
	}
	if vs == nil || !port.Protocol.IsHTTP() && !svc.Egress {
		return v.routes.Get(v.r, at)
	}
	return v.httpLayout.Get(v.r, v.layoutOf(vs, at))
}

// tcpRoutesTo returns the routes that a VirtualService has for a port whose
// requests are not routed one by one.
func (v *viewpoint) tcpRoutesTo(svc *mesh.Service, port *mesh.Port) []plannedTCP {
	vs := v.virtualFor(svc.Hostname)
	if vs == nil || svc.Egress {
		return nil
	}
	return v.tcpLayout.Get(v.r, v.layoutOf(vs, servicePort{svc, port}))
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
func (v *viewpoint) layoutOf(vs *virtualService, at servicePort) layoutKey {
	apart := v.destinationExcept.Get(v.r, vs)
	if apart.has(v.namespace) || at.service.Undeclared && v.hasSeveral(at.service.Hostname) {
		return layoutKey{vs, at, v.domain, v.selection}
	}
	if apart.has(vs.ref.Namespace) {
		return layoutKey{vs: vs, at: at}
	}
	return layoutKey{vs: vs, at: at, domain: v.homeOf(vs.ref.Namespace)}
}
