package compile

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// routeSums counts what some HTTP routes need at one port of one host. Each match
// makes a separate route.
type routeSums struct {
	routes              int
	leads               int // destinations and mirrors of those routes beyond the first
	actions             int // bytes of the actions of those routes
	matches             int // bytes of their matches
	conditions, squares int // numbers of conditions in the matches, and sum of their squares
}

func sumsOf(r *networking.HTTPRoute) routeSums {
	out := routeSums{routes: max(1, len(r.GetMatch()))}
	for _, m := range r.GetMatch() {
		out.matches += proto.Size(m)
		n := len(m.GetHeaders()) + len(m.GetWithoutHeaders()) + len(m.GetQueryParams())
		out.conditions += n
		out.squares += n * n
	}
	out.leads = out.routes * max(0, len(r.GetRoute())+len(mirrorsOf(r))-1)
	out.actions = out.routes * (proto.Size(r) - out.matches)
	return out
}

func (s *routeSums) add(other routeSums) {
	s.routes += other.routes
	s.leads += other.leads
	s.actions += other.actions
	s.matches += other.matches
	s.conditions += other.conditions
	s.squares += other.squares
}

func (s routeSums) parts() int { return s.routes + s.leads + (s.actions+s.matches)/kib }

// through returns the number of parts if each of the routes delegates to each inner
// one. Conditions are compared with each other; many comparisons take the time of
// one part.
func (s routeSums) through(inner routeSums) int {
	const comparisons = 64
	text := times(s.routes, inner.actions) + times(inner.routes, s.actions) + times(s.routes, inner.matches) + times(inner.routes, s.matches)
	pairs := times(s.routes, inner.squares) + times(inner.routes, s.squares) + times(2*s.conditions, inner.conditions)
	return times(s.routes, inner.routes) + times(s.routes, inner.leads) + times(inner.routes, s.leads) + text/kib + pairs/comparisons
}

// connectionSums counts the parts of TCP and TLS routes by port. Routes for any
// port are under 0.
type connectionSums map[int]int

func (s connectionSums) add(port uint32, route []*networking.RouteDestination, match proto.Message) {
	parts := max(1, len(route)) + proto.Size(match)/kib
	for _, to := range route {
		parts += proto.Size(to) / kib
	}
	s[int(port)] += parts
}

// at returns the number of parts at a port.
func (s connectionSums) at(port int) int { return s[0] + s[port] }

// all returns the number of parts at a number of unknown ports.
func (s connectionSums) all(ports int) int {
	all := 0
	for _, parts := range s {
		all += parts
	}
	return times(all, ports)
}

// across returns the number of parts at servers, given the number of servers at
// each port.
func (s connectionSums) across(servers map[int]int) int {
	all := 0
	for port, n := range servers {
		all += times(s.at(port), n)
	}
	return all
}

// virtualSize is the size of the routes of a VirtualService, without other objects.
type virtualSize struct {
	own        int                  // parts of its own text
	http       routeSums            // of routes that do not delegate
	delegating map[string]routeSums // of delegating routes, by name of the delegate
	tls, tcp   connectionSums
	names      int // number of server names in all matches
}

func (vs *virtualService) measure() virtualSize {
	out := virtualSize{own: proto.Size(vs.spec) / kib, delegating: map[string]routeSums{}, tls: connectionSums{}, tcp: connectionSums{}}
	for _, r := range vs.spec.GetHttp() {
		sums := sumsOf(r)
		out.own += sums.routes + sums.leads/sums.routes
		if name := vs.delegateName(r.GetDelegate()); name != "" {
			all := out.delegating[name]
			all.add(sums)
			out.delegating[name] = all
		} else {
			out.http.add(sums)
		}
	}
	for _, r := range vs.spec.GetTls() {
		for _, m := range r.GetMatch() {
			out.own++
			out.names += len(m.GetSniHosts())
			out.tls.add(m.GetPort(), r.GetRoute(), m)
		}
	}
	for _, r := range vs.spec.GetTcp() {
		for _, m := range l4Matches(r) {
			out.own++
			out.tcp.add(m.GetPort(), r.GetRoute(), m)
		}
	}
	return out
}

// all returns the sums of all routes of a delegate. Those that delegate again are
// closed.
func (s *virtualSize) all() routeSums {
	out := s.http
	for _, again := range s.delegating {
		out.add(again)
	}
	return out
}

// asDelegate returns how far a delegate multiplies by itself. The delegating
// objects pay for the merged routes.
func (s *virtualSize) asDelegate() int {
	all := s.all()
	return max(0, all.parts()-s.own)
}

// virtualCost returns how far a VirtualService multiplies: its routes, with those
// of its delegates, at each port of its services, and for each of its hosts at each
// server of a Gateway.
func (rd *reader) virtualCost(vs *virtualService) cost {
	routes := rd.routeParts(vs)
	at := virtualReach{vs: vs}
	for _, name := range vs.meshHosts() {
		rd.addMeshHost(&at, name)
	}
	for _, name := range vs.gatewayNames() {
		for _, gw := range rd.gatewayNamed.under(rd, name) {
			at.addGateway(gw)
		}
	}
	total := times(routes, at.ports) + times(max(1, routes), at.bound) + at.redirected + at.connections
	out := cost{parts: max(0, total-vs.size.own)}
	if len(vs.spec.GetHosts()) == 0 {
		out.parts = vs.size.asDelegate()
	}
	if out.parts > 0 {
		out.factors = at.words(routes, total)
	}
	return out
}

// routeParts returns the parts of its HTTP routes at one port, with those of
// delegates.
func (rd *reader) routeParts(vs *virtualService) int {
	parts := vs.size.http.parts()
	for name, outer := range vs.size.delegating {
		inner := routeSums{}
		for _, to := range rd.virtualNamed.under(rd, name) {
			if to.size.asDelegate() <= rd.budget.ledger.Budget.Object { // Otherwise the delegate is withheld, and it alone is at fault.
				inner = to.size.all()
			}
		}
		parts += max(outer.parts(), outer.through(inner))
	}
	return parts
}

// virtualReach says where the routes of a VirtualService are used.
type virtualReach struct {
	vs          *virtualService
	ports       int // of services, for HTTP
	bound       int // hosts at servers of gateways, for HTTP
	redirected  int // hosts redirected to HTTPS
	connections int // parts of TCP and TLS routes, at all ports
}

func (at *virtualReach) words(routes, total int) string {
	var where, out []string
	for _, f := range []struct {
		n    int
		what string
	}{{at.ports, "ports of services"}, {at.bound, "hosts at servers of gateways"}} {
		if f.n > 0 {
			where = append(where, schema.Thousands(f.n)+" "+f.what)
		}
	}
	ofRoutes := schema.Thousands(routes) + " parts of HTTP routes (each match of each route, with its destinations, its text, and the routes of delegates)"
	if len(where) > 0 {
		out = append(out, ofRoutes+" × "+strings.Join(where, " and "))
	} else if routes > 0 {
		total = max(total, routes)
		out = append(out, ofRoutes)
	}
	if at.connections > 0 {
		out = append(out, schema.Thousands(at.connections)+" parts of routes for connections at all ports")
	}
	return strings.Join(out, " + ") + " = " + schema.Thousands(total) + " parts"
}

// addMeshHost adds the services for which sidecars follow one of its hosts. A short
// name may mean a service in each namespace. Private services of other namespaces do
// not count, so that these cannot make it expensive.
func (rd *reader) addMeshHost(at *virtualReach, name string) {
	host := rd.unlessByCaller(name, at.vs.ref.Namespace)
	if rd.isLoose(host) {
		at.ports += len(rd.undeclaredPorts.Get(rd.r, none{}).numbers)
	} else if svc := rd.settledService(host); svc.Port(undeclaredPort) == nil || !rd.routesHTTP(svc, svc.Port(undeclaredPort)) {
		at.ports++ // where no service has the host
	}
	switch {
	case strings.HasPrefix(host, "*"):
		for _, ports := range []portSums{rd.portsUnder(host, at.vs.ref.Namespace), rd.egressDeclared.Get(rd.r, none{}).under[host]} {
			at.ports += ports.http
			at.connections += at.vs.size.tls.all(ports.other) + at.vs.size.tcp.all(ports.other)
		}
	case isShort(host):
		for _, svc := range rd.registry.namesakes.under(rd, host) {
			if rd.countsFor(at.vs.ref.Namespace, svc) {
				at.addService(rd, svc)
			}
		}
	default:
		for _, svc := range rd.registry.byHost.under(rd, host) {
			if rd.countsFor(at.vs.ref.Namespace, svc) {
				at.addService(rd, svc)
			}
		}
		if svc := rd.egressDeclared.Get(rd.r, none{}).byHost[host]; svc != nil {
			at.addService(rd, svc)
		}
	}
}

// countsFor reports whether the ports of a service count for a rule of a namespace: it
// is its own service, or one that it sees.
func (rd *reader) countsFor(namespace string, svc *mesh.Service) bool {
	return svc.Namespace == namespace || svc.VisibleIn(namespace)
}

func (at *virtualReach) addService(rd *reader, svc *mesh.Service) {
	for _, port := range svc.Ports {
		if rd.routesHTTP(svc, port) {
			at.ports++
		} else if port.Protocol != mesh.UDP {
			at.connections += times(at.vs.size.tls.at(port.Number)+at.vs.size.tcp.at(port.Number), max(1, len(svc.Addresses)))
		}
	}
}

// addGateway adds a Gateway that the hosts are bound to. Lookups of hosts and of
// server names there count too.
func (at *virtualReach) addGateway(gw *gateway) {
	const looks = 64
	hosts := at.vs.spec.GetHosts()
	found := serverCounts{}
	for _, host := range hosts {
		found.add(gw.wanted(host, at.vs.ref.Namespace))
	}
	at.bound += found.http
	at.redirected += found.redirecting + max(0, len(hosts)-1)
	if found.passthrough > 0 {
		at.connections += at.vs.size.tls.across(gw.passthrough) + times(found.passthrough, at.vs.size.names)/looks
	}
	if found.tcp > 0 {
		at.connections += at.vs.size.tcp.across(gw.tcp)
	}
}
