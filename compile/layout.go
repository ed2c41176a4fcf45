package compile

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// layout is which virtual hosts proxies of a scope have at which port, and who
// has which domain: all of an outbound table but the routes.
type layout struct {
	tables   []*tableLayout // by port
	problems diag.List
}

// tableLayout is that of one port.
type tableLayout struct {
	port  int
	first *mesh.Service // of the port, by name
	// ignorePort: the listener says which port is meant, whatever a Host header
	// says.
	ignorePort bool
	entries    []*entry // by the name of the virtual host
	// unknown is for all other hosts; nil for none.
	unknown *ir.VirtualHost
	origins []diag.Ref // that declare the services of the table, each once
}

// entry is a virtual host without its routes. It is the same value as long as
// nothing of it changes.
type entry struct {
	at      servicePort
	scope   scope
	name    string
	domains []string
}

// layOut takes over the entries that are as they were.
func (p *plan) layOut(s scope, last *layout) *layout {
	tables := map[int]*table{}
	for _, svc := range p.servicesFor(s) {
		for _, port := range svc.Ports {
			if !p.routesHTTP(svc, port) {
				continue
			}
			if tables[port.Number] == nil {
				tables[port.Number] = &table{port: port.Number}
			}
			tables[port.Number].add(newCandidate(svc, port, s.domain))
		}
	}
	before := last.entries()
	out := &layout{}
	for _, number := range slices.Sorted(maps.Keys(tables)) {
		t := tables[number]
		p.problems.Add(t.claimDomains()...)
		laid := &tableLayout{port: number, first: t.hosts[0].service, ignorePort: s.role == mesh.Sidecar, origins: t.origins()}
		for _, host := range p.sound(t) {
			e := &entry{servicePort{host.service, host.port}, s, host.Name, host.Domains}
			if old := before[e.at]; old != nil && old.name == e.name && slices.Equal(old.domains, e.domains) {
				e = old
			}
			laid.entries = append(laid.entries, e)
		}
		laid.unknown = p.unknownHost(s, laid)
		out.tables = append(out.tables, last.table(laid))
	}
	out.problems = p.problems.List()
	if last != nil && slices.Equal(out.tables, last.tables) && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// table is the one that is there already, if it is the same.
func (l *layout) table(t *tableLayout) *tableLayout {
	if l == nil {
		return t
	}
	for _, old := range l.tables {
		if old.port == t.port && old.first == t.first && old.unknown == t.unknown && slices.Equal(old.entries, t.entries) && slices.Equal(old.origins, t.origins) {
			return old
		}
	}
	return t
}

// entries by the ports that they are for.
func (l *layout) entries() map[servicePort]*entry {
	if l == nil {
		return nil
	}
	out := map[servicePort]*entry{}
	for _, t := range l.tables {
		for _, e := range t.entries {
			out[e.at] = e
		}
	}
	return out
}

// sound are the hosts by name, with what of their names and domains can be.
func (p *plan) sound(t *table) []*candidate {
	slices.SortStableFunc(t.hosts, func(a, b *candidate) int { return cmp.Compare(a.Name, b.Name) })
	bare := &ir.RouteTable{}
	for _, host := range t.hosts {
		bare.VirtualHosts = append(bare.VirtualHosts, host.VirtualHost)
	}
	hosts, problems := ir.CloseDomains(bare)
	p.problems.Add(problems...)
	var out []*candidate
	for i, host := range hosts {
		if host != nil {
			out = append(out, &candidate{host, t.hosts[i].service, t.hosts[i].port})
		}
	}
	return out
}

// servicesFor are those that proxies of a scope may call. Routers do not follow
// EgressRules.
func (p *plan) servicesFor(s scope) []*mesh.Service {
	namespace := p.forDomain(s.domain).namespace
	var out []*mesh.Service
	for _, svc := range p.services() {
		if svc.VisibleIn(namespace) {
			out = append(out, svc)
		}
	}
	if s.role == mesh.Router {
		return out
	}
	return append(out, p.egressServices()...)
}
