package compile

import (
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// hostKey is a virtual host as a caller sees it or, if caller is nil, as the whole
// scope sees it.
type hostKey struct {
	*entry
	caller *caller
}

// hostPart is a virtual host with its routes and the clusters that they need.
type hostPart struct {
	host *ir.VirtualHost
	// proxied is the same virtual host at the HTTP proxy port, or nil.
	proxied  *ir.VirtualHost
	clusters []*ir.Cluster // by name
	varies   bool          // whether callers see it differently
	problems diag.List
}

// writeHost writes the routes that callers see.
func (p *plan) writeHost(key hostKey, last *hostPart) *hostPart {
	c := p.writer(key.scope, key.caller)
	host := &ir.VirtualHost{Name: key.name, Domains: key.domains, DotKept: p.pilot().HostsAsWritten}
	routes := visible(c.domain.routesTo(key.at.service, key.at.port), c.fits)
	if key.scope.role == mesh.Sidecar {
		routes = upgradeByRules(routes)
	}
	for _, planned := range routes {
		c.needAll(planned.targets)
		host.Routes = append(host.Routes, planned.route)
	}
	host, problems := ir.CloseHost(c.leading(host), c.clusters)
	p.problems.Add(problems...)
	proxied := p.proxiedHost(host, key.at.port.Number)
	if key.at.service.Undeclared && len(host.Routes) == 0 {
		host = c.treatAsUnknown(host, key.at.port.Number)
	}
	out := &hostPart{
		host: host, proxied: proxied,
		clusters: c.sortedClusters(), varies: c.varies, problems: p.problems.List(),
	}
	if last == nil {
		return out
	}
	if reflect.DeepEqual(out.host, last.host) {
		out.host = last.host
	}
	if reflect.DeepEqual(out.proxied, last.proxied) {
		out.proxied = last.proxied
	}
	if slices.Equal(out.clusters, last.clusters) {
		out.clusters = last.clusters
	}
	if out.host == last.host && out.proxied == last.proxied && out.varies == last.varies && sameList(out.clusters, last.clusters) && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// sameList reports whether two slices are identical.
func sameList[T any](a, b []*T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// proxiedHost returns nil if the mesh has no HTTP proxy port.
func (rd *reader) proxiedHost(host *ir.VirtualHost, port int) *ir.VirtualHost {
	if rd.settings.ProxyHTTPPort == 0 {
		return nil
	}
	return atProxyPort(host, strconv.Itoa(port))
}

// visible returns the routes that apply to callers accepted by fits, up to the rule
// that has a catch-all route. As in Pilot, all routes of that rule are included.
func visible(all []plannedRoute, fits func(*source) bool) []plannedRoute {
	var out []plannedRoute
	last := 0
	for _, planned := range all {
		switch {
		case last != 0 && planned.rule != last:
			return out
		case planned.instead && len(out) > 0 || !fits(planned.source):
			continue
		case planned.route.Match.CatchAll():
			last = planned.rule
		}
		out = append(out, planned)
	}
	return out
}

// visibleAtEdge returns the routes for callers from outside the mesh whose source
// fits the edge.
func visibleAtEdge(all []plannedRoute, fits func(*source) bool) []plannedRoute {
	inside := func(planned plannedRoute) bool { return planned.sidecarOnly }
	return visible(slices.DeleteFunc(slices.Clone(all), inside), fits)
}

// ofNobody accepts a source that limits no callers.
func ofNobody(s *source) bool { return s.fits(nil) }

// outbound has the route tables of a scope and all clusters that they lead to.
type outbound struct {
	tables   []*scopeTable // by port
	clusters []*ir.Cluster // by name
	// proxied is all tables merged into one, with the virtual hosts that vary as
	// the scope sees them; nil without an HTTP proxy port.
	proxied  *ir.RouteTable
	problems diag.List
}

// scopeTable is a table as all callers of its scopes see it, except for the virtual
// hosts that vary.
type scopeTable struct {
	*tableLayout
	stretches []*stretchPart
	table     *ir.RouteTable
	varies    []int // indexes of entries that each caller has separately
	// clusters of the parts that do not vary, by name.
	clusters []*ir.Cluster
	problems diag.List
}

// stretchPart is a stretch with its routes.
type stretchPart struct {
	parts    []*hostPart
	hosts    []*ir.VirtualHost
	varies   []int         // indexes of parts
	clusters []*ir.Cluster // of the parts that do not vary, by name
	problems diag.List
}

func (p *plan) writeOutbound(laid *layout, last *outbound) *outbound {
	p.problems.Add(laid.problems...)
	out := &outbound{}
	var clusters [][]*ir.Cluster
	for _, t := range laid.tables {
		table := p.tables.Get(p.r, t)
		p.problems.Add(table.problems...)
		out.tables = append(out.tables, table)
		clusters = append(clusters, table.clusters)
	}
	out.clusters, out.problems = merged(clusters...), p.problems.List()
	if p.settings.ProxyHTTPPort > 0 {
		out.proxied = proxiedTable(out.tables, (*scopeTable).common)
	}
	if last == nil {
		return out
	}
	if slices.Equal(out.clusters, last.clusters) {
		out.clusters = last.clusters
	}
	if slices.Equal(out.tables, last.tables) && sameList(out.clusters, last.clusters) && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// proxiedTable merges all tables into one. parts returns the parts of each table.
func proxiedTable(tables []*scopeTable, parts func(*scopeTable) []*hostPart) *ir.RouteTable {
	out := &ir.RouteTable{Name: ProxyTable}
	for _, t := range tables {
		for _, part := range parts(t) {
			if part.proxied != nil {
				out.VirtualHosts = append(out.VirtualHosts, part.proxied)
			}
		}
	}
	sortByName(out)
	return out
}

// common returns the parts as all callers together see them.
func (t *scopeTable) common() []*hostPart {
	parts := make([]*hostPart, 0, len(t.entries))
	for _, stretch := range t.stretches {
		parts = append(parts, stretch.parts...)
	}
	return parts
}

// writeTable writes a table and reuses unchanged parts of last.
func (p *plan) writeTable(t *tableLayout, last *scopeTable) *scopeTable {
	out := &scopeTable{tableLayout: t}
	hosts := make([]*ir.VirtualHost, 0, len(t.entries)+1)
	for _, b := range t.stretches {
		part := p.stretches.Get(p.r, b)
		for _, i := range part.varies {
			out.varies = append(out.varies, len(hosts)+i)
		}
		hosts, out.stretches = append(hosts, part.hosts...), append(out.stretches, part)
		p.problems.Add(part.problems...)
	}
	if last != nil && slices.Equal(out.stretches, last.stretches) {
		return last
	}
	out.table = t.tableOf(hosts)
	if last != nil && sameTable(out.table, last.table) {
		out.table = last.table
	}
	out.clusters = out.union(last)
	out.problems = p.problems.List()
	return out
}

// writeStretch writes a stretch and reuses unchanged parts of last.
func (p *plan) writeStretch(b *stretch, last *stretchPart) *stretchPart {
	out := &stretchPart{parts: make([]*hostPart, len(b.entries)), hosts: make([]*ir.VirtualHost, len(b.entries))}
	var clusters [][]*ir.Cluster
	for i, e := range b.entries {
		part := p.hosts.Get(p.r, hostKey{e, nil})
		out.parts[i], out.hosts[i] = part, part.host
		if part.varies {
			out.varies = append(out.varies, i)
			continue
		}
		clusters = append(clusters, part.clusters)
		p.problems.Add(part.problems...)
	}
	if last != nil && slices.Equal(out.parts, last.parts) {
		return last
	}
	if out.clusters = union(clusters); last != nil && slices.Equal(out.clusters, last.clusters) {
		out.clusters = last.clusters
	}
	out.problems = p.problems.List()
	return out
}

// tableOf returns a table with these virtual hosts, which are sorted by name.
func (t *tableLayout) tableOf(hosts []*ir.VirtualHost) *ir.RouteTable {
	if t.unknown != nil {
		at := sort.Search(len(hosts), func(i int) bool { return hosts[i].Name > t.unknown.Name })
		hosts = slices.Insert(hosts, at, t.unknown)
	}
	return &ir.RouteTable{Name: strconv.Itoa(t.port), IgnorePort: t.ignorePort, VirtualHosts: hosts}
}

// union returns all clusters of the stretches, or those of last if the lists are
// the same.
func (t *scopeTable) union(last *scopeTable) []*ir.Cluster {
	if last != nil && slices.EqualFunc(t.stretches, last.stretches, (*stretchPart).leadsWhere) {
		return last.clusters
	}
	lists := make([][]*ir.Cluster, len(t.stretches))
	for i, stretch := range t.stretches {
		lists[i] = stretch.clusters
	}
	return union(lists)
}

// union returns all clusters of the lists, sorted by name. If several lists have
// the same name, the first one wins.
func union(lists [][]*ir.Cluster) []*ir.Cluster {
	named := map[string]*ir.Cluster{}
	for _, list := range lists {
		for _, c := range list {
			if named[c.Name] == nil {
				named[c.Name] = c
			}
		}
	}
	return slices.SortedFunc(maps.Values(named), byName)
}

// leadsWhere reports whether two stretches need the same clusters.
func (b *stretchPart) leadsWhere(other *stretchPart) bool {
	return sameList(b.clusters, other.clusters)
}
