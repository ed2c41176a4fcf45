package compile

import (
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// domainPlan is what the networking kinds mean to proxies of one domain, by
// which their short names are completed.
type domainPlan struct {
	*plan
	domain  string
	virtual map[string]*virtualService     // by host
	rules   map[string]*destinationRule    // by host
	routes  map[servicePort][]plannedRoute // of ports whose service has a VirtualService
	tcp     map[servicePort][]plannedTCP   // likewise
}

type domainKey struct{ domain string }

// forDomain is made once for each domain of proxies that ask.
func (p *plan) forDomain(domain string) *domainPlan {
	if !p.pilot().ShortNamesByCaller {
		domain = ""
	}
	return p.snap.Derived(domainKey{domain}, func() any { return p.newDomainPlan(domain) }).(*domainPlan)
}

func (p *plan) newDomainPlan(domain string) *domainPlan {
	d := &domainPlan{
		plan: p, domain: domain,
		virtual: map[string]*virtualService{},
		rules:   map[string]*destinationRule{},
		routes:  map[servicePort][]plannedRoute{},
		tcp:     map[servicePort][]plannedTCP{},
	}
	for _, rule := range p.settings {
		if host := d.complete(rule.spec.GetHost(), rule.ref.Namespace); d.rules[host] == nil {
			d.rules[host] = rule
		}
	}
	for _, vs := range p.virtual {
		for _, name := range vs.meshHosts() {
			if host := d.complete(name, vs.ref.Namespace); d.virtual[host] == nil {
				d.virtual[host] = vs
			}
		}
	}
	for _, svc := range p.snap.Services {
		d.addService(svc)
	}
	for _, svc := range p.egress {
		d.addService(svc)
	}
	return d
}

func (d *domainPlan) addService(svc *mesh.Service) {
	vs := d.virtualFor(svc.Hostname)
	if vs == nil {
		return
	}
	for _, port := range svc.Ports {
		at := servicePort{svc, port}
		switch {
		case d.routesHTTP(svc, port) && port.Protocol.IsHTTP() || isEgress(svc):
			d.routes[at] = append(d.httpRoutes(vs, svc, port), d.defaultRoute(svc, port))
		case !d.routesHTTP(svc, port) && port.Protocol != mesh.UDP:
			d.tcp[at] = d.tcpRoutes(vs, svc, port)
		}
	}
}

// complete is the whole host that a name of an object in this namespace means.
func (d *domainPlan) complete(name, namespace string) string {
	if d.pilot().ShortNamesByCaller {
		return completed(name, d.domain)
	}
	return completed(name, d.homeOf(namespace))
}

func completed(name, domain string) string {
	if name == "" || strings.ContainsAny(name, ".*") {
		return name
	}
	return name + "." + domain
}

// homeOf is the domain of proxies in the namespace.
func (p *plan) homeOf(namespace string) string {
	return namespace + ".svc." + p.snap.Settings.Domain
}

// home is what the networking kinds mean to proxies in the namespace.
func (p *plan) home(namespace string) *domainPlan { return p.forDomain(p.homeOf(namespace)) }

// routesTo are the planned routes of an HTTP port. A VirtualService takes the
// place of all RouteRules.
func (d *domainPlan) routesTo(svc *mesh.Service, port *mesh.Port) []plannedRoute {
	at := servicePort{svc, port}
	if routes, ok := d.routes[at]; ok {
		return routes
	}
	return d.plan.routes[at]
}

func (d *domainPlan) virtualFor(host string) *virtualService { return byHost(d.virtual, host) }
func (d *domainPlan) ruleFor(host string) *destinationRule   { return byHost(d.rules, host) }

// byHost looks for the host itself, then for wildcards, the longest first.
func byHost[T any](objects map[string]*T, host string) *T {
	if found := objects[host]; found != nil || len(objects) == 0 {
		return found
	}
	for at := strings.IndexByte(host, '.'); at >= 0; {
		if found := objects["*"+host[at:]]; found != nil {
			return found
		}
		next := strings.IndexByte(host[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return objects["*"]
}
