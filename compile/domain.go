package compile

import (
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// domainPlan is what the networking kinds mean to proxies of one domain, by
// which their short names are completed. It holds nothing of its own: callers
// make up domains as they like.
type domainPlan struct {
	*plan
	domain    string
	namespace string // of the callers, "" when the domain does not say
}

func (p *plan) forDomain(domain string) *domainPlan {
	return &domainPlan{p, domain, mesh.NamespaceOf(domain, p.snap.Settings.Domain)}
}

// home is what the networking kinds mean to proxies in the namespace.
func (p *plan) home(namespace string) *domainPlan { return p.forDomain(p.homeOf(namespace)) }

// homeOf is the domain of proxies in the namespace.
func (p *plan) homeOf(namespace string) string {
	return namespace + ".svc." + p.snap.Settings.Domain
}

// indexNames finds the VirtualServices and DestinationRules by host, and the
// VirtualServices that send requests elsewhere when another domain asks.
func (p *plan) indexNames() {
	p.settingsOf = newClaims(p, p.destinationRules, func(r *destinationRule) claim { return r }, (*destinationRule).hosts)
	p.virtualOf = newClaims(p, p.virtualServices, func(vs *virtualService) claim { return vs }, (*virtualService).meshHosts)
	for _, vs := range p.virtualServices {
		for _, to := range vs.destinations() {
			vs.byCaller = vs.byCaller || p.meansByCaller(p.unlessByCaller(to.GetHost(), vs.ref.Namespace))
		}
	}
}

// unlessByCaller is a name of an object in this namespace, completed unless
// that is left to the callers.
func (p *plan) unlessByCaller(name, namespace string) string {
	if p.pilot().ShortNamesByCaller {
		return name
	}
	return completed(name, p.homeOf(namespace))
}

// meansByCaller reports whether a destination, or the rule for it that has its
// subsets, may be another one for another domain, or there for some only.
func (p *plan) meansByCaller(host string) bool {
	if isShort(host) || p.settingsOf.differs(p, host) {
		return true
	}
	if svc := p.service(host); svc != nil && !svc.VisibleIn("") {
		return true
	}
	first, _, _ := strings.Cut(host, ".")
	_, ruled := p.settingsOf.alone[first]
	return ruled
}

// service that these callers see.
func (d *domainPlan) service(host string) *mesh.Service {
	if d.snap.Service(host) != nil {
		return d.snap.ServiceIn(d.namespace, host)
	}
	return d.byEgress[host]
}

// complete is the whole host that a name of an object in this namespace means.
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
	return d.virtualOf.find(d, host, d.virtualNamespaces(host))
}

func (d *domainPlan) ruleFor(host string) *destinationRule {
	return d.settingsOf.find(d, host, d.ruleNamespaces(host))
}

// routesTo are the planned routes of an HTTP port. A VirtualService takes the
// place of all RouteRules.
func (d *domainPlan) routesTo(svc *mesh.Service, port *mesh.Port) []plannedRoute {
	at := servicePort{svc, port}
	vs := d.virtualFor(svc.Hostname)
	if vs == nil || !port.Protocol.IsHTTP() && !isEgress(svc) {
		return d.routes[at]
	}
	return laidOut(d, vs, at, func() []plannedRoute {
		return append(d.httpRoutes(vs, svc, port), d.defaultRoute(svc, port))
	})
}

// tcpRoutesTo are the routes that a VirtualService has for a port whose
// requests are not routed one by one.
func (d *domainPlan) tcpRoutesTo(svc *mesh.Service, port *mesh.Port) []plannedTCP {
	vs := d.virtualFor(svc.Hostname)
	if vs == nil || isEgress(svc) {
		return nil
	}
	return laidOut(d, vs, servicePort{svc, port}, func() []plannedTCP { return d.tcpRoutes(vs, svc, port) })
}

// layoutKey has no domain: a snapshot keeps one layout for each VirtualService
// and port, whoever asks.
type layoutKey struct {
	vs *virtualService
	at servicePort
}

// laidOut are the routes of a VirtualService to a port. Those that are the same
// for all callers are built once, and where they are not, those for callers at
// home. For any other domain they are built each time: there is no bound to the
// domains that callers have.
func laidOut[R any](d *domainPlan, vs *virtualService, at servicePort, build func() []R) []R {
	if vs.byCaller && d.domain != d.homeOf(vs.ref.Namespace) {
		return build()
	}
	return d.snap.Derived(layoutKey{vs, at}, func() any { return build() }).([]R)
}
