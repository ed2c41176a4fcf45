package compile

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// undeclaredPort is the port at which a host that no service has there is routed
// even if no service has the port.
const undeclaredPort = 80

// standIn is a host at a port where no service has it.
type standIn struct {
	host string
	port int
}

// newStandIn returns the service that represents such a host. A query caches it, so
// that equal keys have the same service.
func newStandIn(_ *plan, key standIn) servicePort {
	port := gatewayPort(key.port)
	return servicePort{&mesh.Service{Hostname: key.host, Undeclared: true}, port}
}

// routesSidecars is the key of the index of all VirtualServices that have HTTP
// routes for sidecars.
func (vs *virtualService) routesSidecars() []none {
	if len(vs.http) == 0 || len(vs.meshHosts()) == 0 {
		return nil
	}
	return []none{{}}
}

// isLoose reports whether rules for a host apply at all HTTP ports. They do unless
// the namespace in the host's name declares the host for all callers, and so
// decides which ports it has. Declarations elsewhere must not limit the rules for a
// host.
func (rd *reader) isLoose(host string) bool {
	return isShort(host) || rd.settledService(host) == nil
}

// settledService returns the service of a host that is not loose, or nil.
func (rd *reader) settledService(host string) *mesh.Service {
	svc := rd.registered(host)
	if svc == nil {
		svc = rd.egressDeclared.Get(rd.r, none{}).byHost[host]
	}
	if svc == nil || svc.Namespace == "" || svc.Namespace != mesh.NamespaceOf(host, rd.settings.Domain) || strings.HasPrefix(host, "*") || !svc.VisibleIn("") {
		return nil
	}
	return svc
}

// ruledGroup is a part of the ruled hosts: those that VirtualServices of a namespace name.
// Wildcards are apart. Most callers follow the same rules for a whole group, and share
// what is found about it.
type ruledGroup struct {
	namespace string
	wild      bool
}

// ruledHosts is a group with its hosts, sorted, each once.
type ruledHosts struct {
	ruledGroup
	hosts []string
}

func (h ruledHosts) equal(other ruledHosts) bool {
	return h.ruledGroup == other.ruledGroup && slices.Equal(h.hosts, other.hosts)
}

// findRuledHosts returns the hosts of all VirtualServices with HTTP routes for
// sidecars. The groups are sorted.
func (rd *reader) findRuledHosts(none) []ruledHosts {
	groups := map[ruledGroup][]string{}
	for _, vs := range rd.virtualHTTP.under(rd, none{}) {
		for _, name := range rd.virtualOf.names(vs) {
			g := ruledGroup{vs.ref.Namespace, strings.HasPrefix(name, "*")}
			groups[g] = append(groups[g], name)
		}
	}
	var out []ruledHosts
	for g, hosts := range groups {
		slices.Sort(hosts)
		out = append(out, ruledHosts{g, slices.Compact(hosts)})
	}
	slices.SortFunc(out, func(a, b ruledHosts) int {
		switch {
		case a.namespace != b.namespace:
			return strings.Compare(a.namespace, b.namespace)
		case a.wild:
			return 1
		}
		return -1
	})
	return out
}

// settleRuledHosts updates the ruled hosts and the crowds. So a change of a
// VirtualService affects proxies that do not follow it only if one of these lists
// changes. It must be called within graph.Do, after all inputs are set.
func (m *model) settleRuledHosts(r *query.Reader) {
	if crowds := m.findingCrowds.Keep(r, none{}); !slices.Equal(crowds, m.crowdsNow.listed()) {
		m.crowdsNow = newList(crowds)
		m.crowds.Set(none{}, m.crowdsNow)
	}
	found := m.findingRuledHosts.Keep(r, none{})
	before, groups := m.ruledNow, []*ruledGroup{}
	m.ruledNow = map[ruledGroup]ruledHosts{}
	for _, now := range found {
		groups, m.ruledNow[now.ruledGroup] = append(groups, &now.ruledGroup), now
		if !now.equal(before[now.ruledGroup]) {
			m.ruledHosts.Set(now.ruledGroup, &now)
		}
	}
	for g := range before {
		if _, stays := m.ruledNow[g]; !stays {
			m.ruledHosts.Set(g, nil)
		}
	}
	same := func(a, b *ruledGroup) bool { return *a == *b }
	if !slices.EqualFunc(groups, m.ruledGroups.Value(none{}).listed(), same) {
		m.ruledGroups.Set(none{}, newList(groups))
	}
}

// newList returns nil if there are no items.
func newList[T any](items []*T) *list[T] {
	if len(items) == 0 {
		return nil
	}
	return &list[T]{items: items}
}

// reach says at which ports callers follow the HTTP routes of a VirtualService for
// a host where no service has it.
type reach int

const (
	nowhere reach = iota // none are followed
	atFirst              // at port 80
	atAll                // at all HTTP ports
	asCrowd              // callers refuse all unknown hosts instead
)

// ruledHost says how callers follow a VirtualService for a host.
type ruledHost struct {
	reach reach
	// through is the wildcard by which they follow it, if they follow it for that
	// wildcard too. The host then needs no virtual host of its own.
	through string
}

// ruledKey is a host and its callers.
type ruledKey struct {
	host  string
	scope scope
}

// ruledIn returns how callers of a scope follow a VirtualService for a host.
func (rd *reader) ruledIn(s scope, host string) ruledHost {
	s = ruleScope(s)
	if !rd.pilot().ShortNamesByCaller && !rd.virtualExcept.Get(rd.r, host).has(mesh.NamespaceOf(s.domain, rd.settings.Domain)) {
		s.domain = ""
	}
	return rd.ruled.Get(rd.r, ruledKey{host, s})
}

func (rd *reader) findRuled(key ruledKey) ruledHost {
	d := rd.forScope(key.scope)
	vs := d.virtualFor(key.host)
	switch {
	case vs == nil || len(vs.http) == 0:
		return ruledHost{reach: nowhere}
	case slices.Contains(rd.crowds.Get(rd.r, none{}).listed(), vs):
		if rd.isLoose(key.host) {
			return ruledHost{reach: asCrowd}
		}
		return ruledHost{reach: nowhere}
	}
	out := ruledHost{reach: atFirst}
	if rd.isLoose(key.host) {
		out.reach = atAll
	}
	if by := d.matched(vs, key.host); by != key.host && d.virtualFor(by) == vs {
		out.through = by
	}
	return out
}

// undeclared has the hosts for which callers of a scope follow a VirtualService
// also at ports where no service that they see has the host.
type undeclared struct {
	hosts []string // hosts and wildcards, sorted, that are followed at all HTTP ports
	first []string // those that are followed at port 80, sorted
	// through has the wildcards of ruledHost, by the hosts that have one.
	through map[string]string
	// crowd is one of the hosts that have no virtual hosts because they are too
	// many, or "". Callers refuse all unknown hosts instead.
	crowd string
}

func (u *undeclared) equal(other *undeclared) bool {
	return u.crowd == other.crowd && slices.Equal(u.hosts, other.hosts) && slices.Equal(u.first, other.first) && maps.Equal(u.through, other.through)
}

// add adds a host that callers follow like this.
func (u *undeclared) add(host string, ruled ruledHost) {
	if ruled.through != "" {
		if u.through == nil {
			u.through = map[string]string{}
		}
		u.through[host] = ruled.through
	}
	switch ruled.reach {
	case asCrowd:
		u.crowd = max(u.crowd, host)
	case atAll:
		u.hosts = append(u.hosts, host)
	case atFirst:
		u.first = append(u.first, host)
	}
}

// sort sorts the hosts and keeps each once.
func (u *undeclared) sort() {
	for _, hosts := range []*[]string{&u.hosts, &u.first} {
		slices.Sort(*hosts)
		*hosts = slices.Compact(*hosts)
	}
}

// undeclaredIn returns the undeclared hosts whose HTTP routes callers of a scope
// follow.
func (rd *reader) undeclaredIn(s scope) *undeclared { return rd.undeclared.Get(rd.r, ruleScope(s)) }

// ruleScope returns the part of a scope that decides which VirtualServices are followed.
func ruleScope(s scope) scope {
	s.network, s.selection = "", ""
	if !s.sidecar.limits() {
		s.sidecar = nil
	}
	return s
}

func (rd *reader) findUndeclared(s scope) *undeclared {
	out := &undeclared{}
	for part := range rd.undeclaredParts(s, anyGroup) {
		out.crowd = max(out.crowd, part.crowd)
		out.hosts, out.first = append(out.hosts, part.hosts...), append(out.first, part.first...)
		if len(part.through) > 0 && out.through == nil {
			out.through = map[string]string{}
		}
		maps.Copy(out.through, part.through)
	}
	out.sort()
	return out
}

func anyGroup(ruledGroup) bool { return true }

// undeclaredParts returns the undeclared hosts of each group that is wanted. Only sidecars
// follow rules for them.
func (rd *reader) undeclaredParts(s scope, wanted func(ruledGroup) bool) iter.Seq[*undeclared] {
	return func(yield func(*undeclared) bool) {
		if s.role != mesh.Sidecar {
			return
		}
		for _, g := range rd.ruledGroups.Get(rd.r, none{}).listed() {
			if wanted(*g) && !yield(rd.undeclaredOf.Get(rd.r, undeclaredKey{*g, rd.groupScope(*g, s)})) {
				return
			}
		}
	}
}

// undeclaredKey is a group of hosts and their callers.
type undeclaredKey struct {
	ruledGroup
	scope scope
}

// groupScope returns the scope that stands for all whose callers follow the same rules for
// the hosts of a group.
func (rd *reader) groupScope(g ruledGroup, s scope) scope {
	s = ruleScope(s)
	if !rd.pilot().ShortNamesByCaller && !rd.groupExcept.Get(rd.r, g).has(mesh.NamespaceOf(s.domain, rd.settings.Domain)) {
		s.domain = ""
	}
	return s
}

// exceptedInGroup returns the callers that may have other VirtualServices for a host of a
// group than the rest.
func (rd *reader) exceptedInGroup(g ruledGroup) (out exceptions) {
	for _, host := range rd.hostsIn(g) {
		out = out.with(rd.virtualExcept.Get(rd.r, host))
	}
	return out
}

func (rd *reader) hostsIn(g ruledGroup) []string {
	if found := rd.ruledHosts.Get(rd.r, g); found != nil {
		return found.hosts
	}
	return nil
}

func (rd *reader) findUndeclaredOf(key undeclaredKey) *undeclared {
	out := &undeclared{}
	for _, name := range rd.hostsIn(key.ruledGroup) {
		host := completed(name, key.scope.domain)
		out.add(host, rd.ruledIn(key.scope, host))
	}
	out.sort()
	return out
}

// undeclaredSigns says whether callers of a scope follow rules for undeclared hosts,
// without naming them all.
type undeclaredSigns struct {
	crowd string // as in undeclared
	atAll bool   // whether some are followed at all HTTP ports
}

func (rd *reader) findUndeclaredSigns(s scope) (out undeclaredSigns) {
	for part := range rd.undeclaredParts(s, anyGroup) {
		out.crowd, out.atAll = max(out.crowd, part.crowd), out.atAll || len(part.hosts) > 0
	}
	return out
}

// undeclaredAt returns those hosts at a port. At a port of a service that a Sidecar
// hides from its callers they still follow the rule.
func (rd *reader) undeclaredAt(s scope, u *undeclared, port int) []string {
	var out []string
	if len(u.hosts) > 0 && rd.routesUndeclaredAt(port) {
		out = append(out, u.hosts...)
	}
	if port == undeclaredPort {
		out = append(out, u.first...)
	} else if s.sidecar.limits() {
		for _, host := range u.first {
			if at := rd.settledService(host).Port(port); at != nil && rd.routesHTTP(rd.settledService(host), at) {
				out = append(out, host)
			}
		}
	}
	return rd.importedAt(s, out, port)
}

// findCrowds returns the withheld VirtualServices whose loose hosts would exceed
// the budget even with a single closed route at each port. It returns those with
// the most hosts, until the rest fits.
func (rd *reader) findCrowds(none) []*virtualService {
	type sized struct {
		vs    *virtualService
		parts int
	}
	var all []sized
	sum := 0
	for _, vs := range rd.virtualHTTP.under(rd, none{}) {
		if !rd.withheld(vs.declared) {
			continue
		}
		of := sized{vs, 0}
		for _, name := range rd.virtualOf.names(vs) {
			if rd.isLoose(name) {
				of.parts += times(closedHostParts, len(rd.undeclaredPorts.Get(rd.r, none{}).numbers))
			}
		}
		all = append(all, of)
		sum += of.parts
	}
	slices.SortStableFunc(all, func(a, b sized) int { return b.parts - a.parts })
	var out []*virtualService
	for i := 0; i < len(all) && sum > rd.budget.ledger.Budget.Object; i++ {
		out = append(out, all[i].vs)
		sum -= all[i].parts
	}
	return out
}

// closedHostParts is the number of parts of a virtual host with one closed route:
// the route and two domains.
const closedHostParts = 3

// importedAt returns those of the hosts whose rules callers of a scope follow at a
// port.
func (rd *reader) importedAt(s scope, hosts []string, port int) []string {
	if !s.sidecar.limits() {
		return hosts
	}
	l, d := s.sidecar.at(port), rd.forScope(s)
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool {
		vs := d.virtualFor(host)
		return l == nil || vs == nil || !slices.ContainsFunc(l.imports, func(i imported) bool {
			return i.in(vs.ref.Namespace) && (i.covers(host) || imported{host: host}.covers(i.host))
		})
	})
}

// openForUndeclared adds a table for port 80 if there is none and some hosts that
// are followed at all HTTP ports need one. If a service takes connections there, it
// keeps them.
func (p *plan) openForUndeclared(s scope, u *undeclared, tables map[int]*table) {
	hosts := p.openingHosts(s, u)
	if len(hosts) == 0 || tables[undeclaredPort] != nil {
		return
	}
	d := p.forScope(s)
	if svc := p.takesConnections(s, undeclaredPort); svc != nil {
		for _, host := range hosts {
			if own := d.service(host); own != nil && own.Port(undeclaredPort) != nil {
				continue // The rule does not apply at a port where its host takes connections.
			}
			p.notHonoured(diag.PortClaimed, d.virtualFor(host).ref, "spec.hosts", fmt.Sprintf(
				"requests to %s at port %d are not routed: %s accepts connections at this port, and no service has HTTP there", host, undeclaredPort, svc.Hostname))
		}
		return
	}
	t := newTable(undeclaredPort, p.standIns.Get(p.r, standIn{hosts[0], undeclaredPort}).service)
	for _, host := range hosts {
		t.declaredBy(d.virtualFor(host).ref)
	}
	tables[undeclaredPort] = t
}

// openingHosts returns the hosts that need a table for port 80.
func (rd *reader) openingHosts(s scope, u *undeclared) []string {
	hosts := rd.importedAt(s, u.hosts, undeclaredPort)
	if u.crowd != "" {
		hosts = append(slices.Clone(hosts), u.crowd)
	}
	return hosts
}

// openedByRules returns the service that stands for port 80 if openForUndeclared would add a
// table for that port, else nil. No service has HTTP there.
func (rd *reader) openedByRules(s scope) *mesh.Service {
	if rd.undeclaredSigns.Get(rd.r, ruleScope(s)) == (undeclaredSigns{}) {
		return nil
	}
	hosts := rd.openingHosts(s, rd.undeclaredIn(s))
	if len(hosts) == 0 || rd.takesConnections(s, undeclaredPort) != nil {
		return nil
	}
	return rd.standIns.Get(rd.r, standIn{hosts[0], undeclaredPort}).service
}

// takesConnections returns a service whose connections to a port are not read as
// HTTP, or nil.
func (rd *reader) takesConnections(s scope, number int) *mesh.Service {
	for _, svc := range rd.tcpServicesFor(s) {
		for _, port := range rd.portsFor(s, svc) {
			if port.Number == number && port.Protocol != mesh.UDP && !rd.routesHTTP(svc, port) {
				return svc
			}
		}
	}
	return nil
}

// undeclaredEntries returns the virtual hosts of a table for hosts that no service
// of the table has. They get the domains that services leave free. A host that is
// followed through a wildcard shares the virtual host of the wildcard: a rule for a
// wildcard must not be repeated for each host that others name.
func (p *plan) undeclaredEntries(s scope, t *tableLayout, u *undeclared) []*entry {
	hosts := p.undeclaredAt(s, u, t.port)
	if len(hosts) == 0 {
		return nil
	}
	known := make(map[string]bool, len(t.entries))
	for _, e := range t.entries {
		known[e.at.service.Hostname] = true
	}
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return known[host] })
	if len(hosts) == 0 {
		return nil // All are declared, as in most meshes.
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
	listed, at := map[string]bool{}, map[string]*candidate{}
	for _, host := range hosts {
		listed[host] = true
	}
	add := func(host string) {
		of := p.standIns.Get(p.r, standIn{host, t.port})
		at[host] = &candidate{&ir.VirtualHost{Name: host + ":" + strconv.Itoa(t.port)}, of.service, of.port}
		found.add(at[host])
	}
	for _, host := range hosts {
		if by := u.through[host]; by == "" || !listed[by] {
			add(host)
		}
	}
	for _, host := range hosts { // Whole names first: a short form must not take one.
		if at[host] == nil {
			at[host] = at[u.through[host]]
		}
		claim(at[host], strings.TrimSuffix(host, "."))
	}
	for _, host := range hosts {
		claim(at[host], hostForms(strings.TrimSuffix(host, "."), s.domain)...)
	}
	found.hosts = slices.DeleteFunc(found.hosts, func(c *candidate) bool { return !c.sound() })
	var out []*entry
	for _, c := range p.sound(found) {
		at := servicePort{c.service, c.port}
		out = append(out, p.entry(at, p.commonScope(s, at), c))
	}
	return out
}

// variesByCaller reports whether callers of different namespaces may follow
// different rules, or none, for a host where no service has it. Requests to hosts
// that a caller does not know are handled differently.
func (rd *reader) variesByCaller(at servicePort) bool {
	forAll := func(planned plannedRoute) bool { return planned.source == nil }
	return rd.pilot().ShortNamesByCaller || !slices.ContainsFunc(rd.forDomain("").routesTo(at.service, at.port), forAll)
}

// treatAsUnknown returns a host that no service has at a port, without routes for
// this caller, with the routes of other unknown hosts. The HTTP proxy port has no
// such routes and shares the host.
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

// checkUndeclared reports the parts of a VirtualService that are not followed for a
// host that nobody declares. It returns false if none of it is followed.
func (d *check) checkUndeclared(vs *virtualService, at, host string) bool {
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

// checkNobodysHost reports a rule for a host that belongs to no namespace: callers
// of other namespaces do not follow it.
func (d *check) checkNobodysHost(vs *virtualService, at, host string) {
	if d.pilot().AnyNamespaceRules || d.ownerOf(host) != "" || vs.ref.Namespace == d.settings.RootNamespace ||
		slices.Equal(vs.exported, []string{"."}) || slices.Equal(vs.exported, []string{vs.ref.Namespace}) {
		return
	}
	d.notHonoured(diag.FollowedByFew, vs.ref, at, fmt.Sprintf(
		"only callers in namespace %s follow it: no ServiceEntry declares %s, so it belongs to no namespace; write it in namespace %s for callers of all namespaces, or set exportTo to [\".\"]",
		vs.ref.Namespace, host, d.settings.RootNamespace))
}
