package compile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// undeclaredPort is the port at which a host that nobody declares is routed even if no
// service has the port.
const undeclaredPort = 80

// standIn names a host that nobody declares, at a port.
type standIn struct {
	host string
	port int
}

// newStandIn makes the service that stands for such a host. A query keeps it, so that
// equal keys have the same service.
func newStandIn(_ *plan, key standIn) servicePort {
	port := gatewayPort(key.port)
	return servicePort{&mesh.Service{Hostname: key.host, Undeclared: true}, port}
}

// routesSidecars is for the index of all VirtualServices that have HTTP routes for
// sidecars.
func (vs *virtualService) routesSidecars() []none {
	if len(vs.http) == 0 || len(vs.meshHosts()) == 0 {
		return nil
	}
	return []none{{}}
}

// mayBeUndeclared reports whether some callers know no service of a host, or a wildcard
// may cover hosts that nobody declares.
func (p *plan) mayBeUndeclared(host string) bool {
	if isShort(host) || strings.HasPrefix(host, "*") {
		return true
	}
	svc := p.registered(host)
	if svc == nil {
		svc = p.egressDeclared.Get(p.r, none{}).byHost[host]
	}
	return svc == nil || !svc.VisibleIn("")
}

// findLooseHosts has the hosts of all VirtualServices that may be undeclared for some
// callers, in order, each once. There are few in most meshes: the others need no look
// for each scope.
func (p *plan) findLooseHosts(none) []string {
	var out []string
	for _, vs := range p.virtualHTTP.under(p, none{}) {
		for _, name := range p.virtualOf.names(vs) {
			if p.mayBeUndeclared(name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// settleLooseHosts brings them up to date, and the crowds. A change of a VirtualService
// concerns the proxies that do not follow it only if a list is another one. It must be
// called within graph.Do, after all inputs are set.
func (m *model) settleLooseHosts(r *query.Reader) {
	if crowds := m.findingCrowds.Keep(r, none{}); !slices.Equal(crowds, m.crowdsNow.listed()) {
		m.crowdsNow = newList(crowds)
		m.crowds.Set(none{}, m.crowdsNow)
	}
	hosts := m.looseHosts.Keep(r, none{})
	same := func(a string, b *string) bool { return a == *b }
	if slices.EqualFunc(hosts, m.looseNow.listed(), same) {
		return
	}
	var all []*string
	for i := range hosts {
		all = append(all, &hosts[i])
	}
	m.looseNow = newList(all)
	m.loose.Set(none{}, m.looseNow)
}

// newList is nil if there is nothing in it.
func newList[T any](items []*T) *list[T] {
	if len(items) == 0 {
		return nil
	}
	return &list[T]{items: items}
}

// undeclared are hosts that nobody declares, and for which callers of a scope follow a
// VirtualService.
type undeclared struct {
	hosts []string // and wildcards, in order
	// crowd is one of those that have no virtual hosts, as they are too many; "" for
	// none. Callers refuse all unknown hosts in their place.
	crowd string
}

func (u *undeclared) equal(other *undeclared) bool {
	return u.crowd == other.crowd && slices.Equal(u.hosts, other.hosts)
}

// undeclaredIn are the hosts for which callers of a scope follow the HTTP routes of a
// VirtualService, although they know no service with that name.
func (p *plan) undeclaredIn(s scope) *undeclared {
	out := &undeclared{}
	if s.role != mesh.Sidecar {
		return out
	}
	d, crowds := p.forScope(s), p.crowds.Get(p.r, none{}).listed()
	for _, name := range p.loose.Get(p.r, none{}).listed() {
		host := completed(*name, s.domain)
		if d.service(host) != nil {
			continue
		}
		vs := d.virtualFor(host)
		switch {
		case vs == nil || len(vs.http) == 0:
		case slices.Contains(crowds, vs):
			out.crowd = host
		default:
			out.hosts = append(out.hosts, host)
		}
	}
	slices.Sort(out.hosts)
	out.hosts = slices.Compact(out.hosts)
	return out
}

// findCrowds has the VirtualServices that are withheld and whose hosts that may be
// undeclared would exceed the budget even if each had a single closed route at each
// port: those with the most hosts, until the rest fits.
func (p *plan) findCrowds(none) []*virtualService {
	type sized struct {
		vs    *virtualService
		parts int
	}
	var all []sized
	sum := 0
	for _, vs := range p.virtualHTTP.under(p, none{}) {
		if !p.withheld(vs.declared) {
			continue
		}
		of := sized{vs, 0}
		for _, name := range p.virtualOf.names(vs) {
			if p.mayBeUndeclared(name) {
				of.parts += times(closedHostParts, len(p.undeclaredPorts.Get(p.r, none{}).numbers))
			}
		}
		all = append(all, of)
		sum += of.parts
	}
	slices.SortStableFunc(all, func(a, b sized) int { return b.parts - a.parts })
	var out []*virtualService
	for i := 0; i < len(all) && sum > p.budget.ledger.Budget.Object; i++ {
		out = append(out, all[i].vs)
		sum -= all[i].parts
	}
	return out
}

// closedHostParts are those of a virtual host with one closed route: the route, and the
// two domains.
const closedHostParts = 3

// importedAt are those of the hosts whose rules callers of a scope follow at a port.
func (p *plan) importedAt(s scope, hosts []string, port int) []string {
	if !s.sidecar.limits() {
		return hosts
	}
	l, d := s.sidecar.at(port), p.forScope(s)
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool {
		vs := d.virtualFor(host)
		return l == nil || vs == nil || !slices.ContainsFunc(l.imports, func(i imported) bool {
			return i.in(vs.ref.Namespace) && (i.covers(host) || imported{host: host}.covers(i.host))
		})
	})
}

// openForUndeclared makes a table for port 80 if there is none and some hosts that
// nobody declares want one. A service that takes connections there keeps them.
func (p *plan) openForUndeclared(s scope, u *undeclared, tables map[int]*table) {
	hosts := p.importedAt(s, u.hosts, undeclaredPort)
	if u.crowd != "" {
		hosts = append(slices.Clone(hosts), u.crowd)
	}
	if len(hosts) == 0 || tables[undeclaredPort] != nil {
		return
	}
	d := p.forScope(s)
	if svc := p.takesConnections(s, undeclaredPort); svc != nil {
		for _, host := range hosts {
			p.notHonoured(diag.PortClaimed, d.virtualFor(host).ref, "spec.hosts", fmt.Sprintf(
				"requests to %s at port %d are not routed: %s takes connections at this port, and no service takes HTTP there", host, undeclaredPort, svc.Hostname))
		}
		return
	}
	t := newTable(undeclaredPort, p.standIns.Get(p.r, standIn{hosts[0], undeclaredPort}).service)
	for _, host := range hosts {
		t.declaredBy(d.virtualFor(host).ref)
	}
	tables[undeclaredPort] = t
}

// takesConnections is a service whose connections to a port are not read as HTTP; nil
// for none.
func (p *plan) takesConnections(s scope, number int) *mesh.Service {
	for _, svc := range p.servicesFor(s) {
		for _, port := range p.portsFor(s, svc) {
			if port.Number == number && port.Protocol != mesh.UDP && !p.routesHTTP(svc, port) {
				return svc
			}
		}
	}
	return nil
}

// undeclaredEntries are the virtual hosts of a table for hosts that nobody declares.
// They have what is left of domains by the services of the table.
func (p *plan) undeclaredEntries(s scope, t *tableLayout, hosts []string) []*entry {
	if hosts = p.importedAt(s, hosts, t.port); len(hosts) == 0 || !p.routesUndeclaredAt(t.port) {
		return nil
	}
	taken := map[string]bool{}
	for _, e := range t.entries {
		for _, domain := range e.domains {
			taken[strings.ToLower(domain)] = true
		}
	}
	found := &table{port: t.port}
	claim := func(to *candidate, names ...string) {
		wanted := &candidate{VirtualHost: &ir.VirtualHost{}}
		wanted.callBy(strconv.Itoa(t.port), names...)
		for _, domain := range wanted.Domains {
			if key := strings.ToLower(domain); !taken[key] {
				taken[key] = true
				to.Domains = append(to.Domains, domain)
			}
		}
	}
	for _, host := range hosts { // Whole names first: no short form may take one.
		at := p.standIns.Get(p.r, standIn{host, t.port})
		c := &candidate{&ir.VirtualHost{Name: host + ":" + strconv.Itoa(t.port)}, at.service, at.port}
		claim(c, strings.TrimSuffix(host, "."))
		found.add(c)
	}
	for _, c := range found.hosts {
		claim(c, hostForms(strings.TrimSuffix(c.service.Hostname, "."), s.domain)...)
	}
	found.hosts = slices.DeleteFunc(found.hosts, func(c *candidate) bool { return !c.sound() })
	var out []*entry
	for _, c := range p.sound(found) {
		out = append(out, p.entry(servicePort{c.service, c.port}, s, c))
	}
	return out
}

// treatAsUnknown is for a host that nobody declares if no route is for this caller:
// requests go where those to other unknown hosts go. The HTTP proxy port has no such
// place, and shares the host.
func (c *writer) treatAsUnknown(host *ir.VirtualHost, port int) *ir.VirtualHost {
	unknown := c.plan.unknownAt(c.scope, port)
	if unknown == nil {
		return host
	}
	if unknown != blockAll {
		c.put(c.plan.passthrough)
	}
	out := *host
	out.Routes = unknown.Routes
	return &out
}

// checkUndeclared reports what of a VirtualService is not followed for a host that
// nobody declares. It is false if nothing is.
func (d *domainPlan) checkUndeclared(vs *virtualService, at, host string) bool {
	http, connections := len(vs.http) > 0, len(vs.spec.GetTls())+len(vs.spec.GetTcp()) > 0
	if http && !connections {
		return true
	}
	consequence := "so no connection of a sidecar is routed by it"
	if http {
		consequence = "so no connection of a sidecar is routed by spec.tls and spec.tcp; only spec.http is followed"
	}
	if !strings.HasPrefix(host, "*") {
		d.checkService(vs.ref, at, host, consequence)
		return http
	}
	d.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownHost, Object: vs.ref, Field: at,
		Value: fmt.Sprintf("%q", host), Message: "no ServiceEntry declares a host beneath it, " + consequence,
	})
	return http
}

// checkNobodysHost reports a rule for a host that belongs to no namespace: callers of
// other namespaces do not follow it.
func (d *domainPlan) checkNobodysHost(vs *virtualService, at, host string) {
	if d.pilot().AnyNamespaceRules || d.ownerOf(host) != "" || vs.ref.Namespace == d.settings.RootNamespace ||
		slices.Equal(vs.exported, []string{"."}) || slices.Equal(vs.exported, []string{vs.ref.Namespace}) {
		return
	}
	d.notHonoured(diag.FollowedByFew, vs.ref, at, fmt.Sprintf(
		"only callers in namespace %s follow it: no ServiceEntry declares %s, so it belongs to no namespace; write it in namespace %s for callers of all namespaces, or set exportTo to [\".\"]",
		vs.ref.Namespace, host, d.settings.RootNamespace))
}
