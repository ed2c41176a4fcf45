package compile

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// layout says which virtual hosts proxies of a scope have at each port, and which
// domains each virtual host has. It is an outbound table without its routes.
type layout struct {
	tables   []*tableLayout // by port
	problems diag.List
}

// tableLayout is the layout of one port.
type tableLayout struct {
	port  int
	first *mesh.Service // of the services at the port, by name
	// ignorePort is set if the listener decides the port, whatever port the Host
	// header has.
	ignorePort bool
	entries    []*entry   // by name of the virtual host
	stretches  []*stretch // together all entries
	// unknown is the virtual host for all other hosts, or nil.
	unknown *ir.VirtualHost
	origins []diag.Ref // objects that declare the services of the table, each once
}

// entry is a virtual host without its routes. It is the same value as long as it
// does not change, in all scopes that have the same one.
type entry struct {
	at      servicePort
	scope   scope // that of all callers that have it, or of any of them
	name    string
	domains []string
}

// entryKey is the content of an entry.
type entryKey struct {
	at      servicePort
	scope   scope
	name    string
	domains string // joined by newlines, which no domain contains
}

func newEntry(_ *plan, key entryKey) *entry {
	return &entry{key.at, key.scope, key.name, strings.Split(key.domains, "\n")}
}

// commonScope returns the scope that stands for all scopes whose callers have the
// same routes to a port, with the same clusters.
func (rd *reader) commonScope(s scope, at servicePort) scope {
	if !rd.portExcept.Get(rd.r, at).has(mesh.NamespaceOf(s.domain, rd.settings.Domain)) {
		s.domain, s.selection = "", ""
	}
	return s
}

// exceptedAtPort returns the callers that may have other routes to a port, or other
// clusters behind them, than the rest.
func (rd *reader) exceptedAtPort(at servicePort) exceptions {
	if at.service.Undeclared && rd.variesByCaller(at) {
		return everyone
	}
	out := rd.ruleExceptions(at.service.Hostname).with(rd.virtualExcept.Get(rd.r, at.service.Hostname))
	rest := rd.forDomain("")
	if vs := rest.virtualFor(at.service.Hostname); vs != nil {
		out = out.with(rd.destinationExcept.Get(rd.r, vs))
	}
	for _, planned := range rest.routesTo(at.service, at.port) {
		for _, t := range planned.targets {
			out = out.with(rd.ruleExceptions(t.host))
		}
	}
	return out
}

// layOut returns the layout of a scope. Parts that equal those of another scope, or
// of an earlier layout, are shared.
func (p *plan) layOut(s scope) *layout {
	tables, undeclared := p.gather(s), p.undeclaredIn(s)
	p.openForUndeclared(s, undeclared, tables)
	out := &layout{}
	for _, number := range slices.Sorted(maps.Keys(tables)) {
		out.tables = append(out.tables, p.laid.table(p.layOutTable(s, tables[number], undeclared)))
	}
	out.problems = p.problems.List()
	return p.laid.layouts.one(out, (*layout).equal)
}

// layOutTable returns the layout of a table whose services are collected.
func (p *plan) layOutTable(s scope, t *table, undeclared *undeclared) *tableLayout {
	p.problems.Add(t.claimDomains(p.forScope(s), p.addressesIn(s))...)
	laid := &tableLayout{port: t.port, first: t.first, ignorePort: s.role == mesh.Sidecar, origins: t.origins, entries: t.plain}
	for _, host := range p.sound(t) {
		at := servicePort{host.service, host.port}
		laid.entries = append(laid.entries, p.entry(at, p.commonScope(s, at), host))
	}
	laid.entries = append(laid.entries, p.undeclaredEntries(s, laid, undeclared)...)
	if byName := func(a, b *entry) int { return cmp.Compare(a.name, b.name) }; !slices.IsSortedFunc(laid.entries, byName) {
		slices.SortFunc(laid.entries, byName)
	}
	laid.unknown = p.unknownHost(s, laid)
	return laid
}

// gather returns a table per port with all services that proxies of the scope may
// call by HTTP.
func (rd *reader) gather(s scope) map[int]*table {
	tables, contested, owners := map[int]*table{}, rd.contestedIn(s), rd.addressesIn(s)
	for _, svc := range rd.servicesFor(s) {
		for _, port := range rd.portsFor(s, svc) {
			if !rd.routesHTTP(svc, port) {
				continue
			}
			t := tables[port.Number]
			if t == nil {
				t = newTable(port.Number, svc)
				tables[port.Number] = t
			}
			t.declaredBy(svc.Origin.Ref())
			at := servicePort{svc, port}
			if e := rd.plain.Get(rd.r, plainKey{at, rd.commonScope(s, at), calledBy(svc, s.domain)}); e != nil && !contested.has(e) && !owners.losesAny(at) {
				t.plain = append(t.plain, e)
			} else {
				t.add(newCandidate(svc, port, s.domain))
			}
		}
	}
	return tables
}

// plainKey is a port, with the part of the callers' domain that decides the names
// by which they know its service.
type plainKey struct {
	at     servicePort
	scope  scope
	domain string
}

// plainEntry returns the entry of a virtual host that has all its wanted domains,
// or nil if the domains are not valid.
func (rd *reader) plainEntry(key plainKey) *entry {
	host := newCandidate(key.at.service, key.at.port, key.domain)
	if !host.sound() {
		return nil
	}
	return rd.entry(key.at, key.scope, host)
}

func (rd *reader) entry(at servicePort, s scope, host *candidate) *entry {
	return rd.entries.Get(rd.r, entryKey{at, s, host.Name, strings.Join(host.Domains, "\n")})
}

// equal reports whether two layouts are the same.
func (l *layout) equal(other *layout) bool {
	return slices.Equal(l.tables, other.tables) && sameProblems(l.problems, other.problems)
}

// equal reports whether two layouts of a table are the same.
func (t *tableLayout) equal(other *tableLayout) bool {
	return t.port == other.port && t.first == other.first && t.ignorePort == other.ignorePort && same(t.unknown, other.unknown) &&
		slices.Equal(t.entries, other.entries) && slices.Equal(t.origins, other.origins)
}

// laid holds the layouts in use, so that scopes with equal layouts share one and
// all that is derived from it.
type laid struct {
	layouts alive[layout]
	tables  map[int]*alive[tableLayout] // by port
}

// table returns an equal existing layout if there is one. A new layout shares equal
// stretches with existing ones.
func (l *laid) table(t *tableLayout) *tableLayout {
	if l.tables[t.port] == nil {
		l.tables[t.port] = &alive[tableLayout]{}
	}
	found := l.tables[t.port].one(t, (*tableLayout).equal)
	if found == t {
		t.stretches = stretchesOf(t.entries)
		t.share(l.tables[t.port])
	}
	return found
}

// stretch is a run of consecutive entries. Its results are computed once for all
// tables that contain it, and a change of an entry affects no other stretch.
type stretch struct {
	entries []*entry
	finding sync.Once
	exact   map[string]int // entries by domain, in lower case
	wild    []wildDomain
}

// stretchesOf cuts entries into stretches with the given average length. The names
// decide where to cut, so that adding or removing an entry moves no other cut.
func stretchesOf(entries []*entry) []*stretch {
	const average = 64
	var out []*stretch
	from := 0
	for i, e := range entries {
		h := fnv.New32a()
		_, _ = h.Write([]byte(e.name))
		if h.Sum32()%average == 0 || i == len(entries)-1 {
			out = append(out, &stretch{entries: entries[from : i+1]})
			from = i + 1
		}
	}
	return out
}

// share replaces stretches with equal ones of other layouts.
func (t *tableLayout) share(others *alive[tableLayout]) {
	known := map[*entry][]*stretch{} // by first entry
	for _, w := range others.values {
		if other := w.Value(); other != nil && other != t {
			for _, b := range other.stretches {
				if first := b.entries[0]; !slices.Contains(known[first], b) {
					known[first] = append(known[first], b)
				}
			}
		}
	}
	for i, b := range t.stretches {
		same := func(k *stretch) bool { return slices.Equal(k.entries, b.entries) }
		if at := slices.IndexFunc(known[b.entries[0]], same); at >= 0 {
			t.stretches[i] = known[b.entries[0]][at]
		}
	}
}

// alive is a set of values that are in use elsewhere. It keeps none of them alive.
type alive[T any] struct{ values []weak.Pointer[T] }

// one returns an equal existing value if there is one, else the value itself.
func (a *alive[T]) one(value *T, equal func(a, b *T) bool) *T {
	found := value
	a.values = slices.DeleteFunc(a.values, func(w weak.Pointer[T]) bool {
		known := w.Value()
		if known != nil && found == value && equal(value, known) {
			found = known
		}
		return known == nil
	})
	if found == value {
		a.values = append(a.values, weak.Make(value))
	}
	return found
}

// sound returns the hosts by name, without invalid names and domains.
func (rp *reporter) sound(t *table) []*candidate {
	slices.SortStableFunc(t.hosts, func(a, b *candidate) int { return cmp.Compare(a.Name, b.Name) })
	bare := &ir.RouteTable{}
	for _, host := range t.hosts {
		bare.VirtualHosts = append(bare.VirtualHosts, host.VirtualHost)
	}
	hosts, problems := ir.CloseDomains(bare)
	rp.problems.Add(problems...)
	var out []*candidate
	for i, host := range hosts {
		if host != nil {
			out = append(out, &candidate{host, t.hosts[i].service, t.hosts[i].port})
		}
	}
	return out
}

// servicesFor returns the services that proxies of a scope may call. Routers do not
// follow EgressRules.
func (rd *reader) servicesFor(s scope) []*mesh.Service {
	return rd.servicesIn(rd.forDomain(s.domain).namespace, s)
}

// servicesIn is servicesFor with a namespace instead of the domain of the scope.
func (rd *reader) servicesIn(namespace string, s scope) []*mesh.Service {
	all := rd.services
	if s.sidecar.limits() {
		all = func() []*mesh.Service { return rd.candidates(s.sidecar) }
	}
	var out []*mesh.Service
	for _, svc := range all() {
		if svc.VisibleIn(namespace) {
			out = append(out, svc)
		}
	}
	if s.role == mesh.Router {
		return out
	}
	return append(out, rd.egressIn(namespace)...)
}

// portsFor returns the ports of a service that proxies of a scope see.
func (rd *reader) portsFor(s scope, svc *mesh.Service) []*mesh.Port {
	if !s.sidecar.limits() {
		return svc.Ports
	}
	return slices.DeleteFunc(slices.Clone(svc.Ports), func(port *mesh.Port) bool { return !s.sidecar.knows(svc, port.Number) })
}
