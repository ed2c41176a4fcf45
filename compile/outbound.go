package compile

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// hostKey is a virtual host as a caller sees it; without one, as all of the
// scope do.
type hostKey struct {
	*entry
	caller *caller
}

// hostPart is a virtual host with its routes, and the clusters that they need.
type hostPart struct {
	host *ir.VirtualHost
	// proxied is the same at the HTTP proxy port; nil for none.
	proxied  *ir.VirtualHost
	clusters []*ir.Cluster // by name
	varies   bool          // from one caller to the next
	problems diag.List
}

// writeHost fills in the routes that callers see.
func (p *plan) writeHost(key hostKey, last *hostPart) *hostPart {
	c := p.writer(key.scope, key.caller)
	host := &ir.VirtualHost{Name: key.name, Domains: key.domains}
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
	out := &hostPart{
		host: host, proxied: p.proxiedHost(host, key.at.port.Number),
		clusters: c.sortedClusters(), varies: c.varies, problems: p.problems.List(),
	}
	if last == nil {
		return out
	}
	if reflect.DeepEqual(out.host, last.host) {
		out.host, out.proxied = last.host, last.proxied
	}
	if slices.Equal(out.clusters, last.clusters) {
		out.clusters = last.clusters
	}
	if out.host == last.host && out.varies == last.varies && sameList(out.clusters, last.clusters) && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// sameList reports whether two slices are one.
func sameList[T any](a, b []*T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// proxiedHost is nil where nobody asks for it.
func (p *plan) proxiedHost(host *ir.VirtualHost, port int) *ir.VirtualHost {
	if p.settings.ProxyHTTPPort == 0 {
		return nil
	}
	return atProxyPort(host, strconv.Itoa(port))
}

// visible are the routes for callers that fit, up to the rule of which one takes
// every request. Pilot wrote all routes of a rule.
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

// visibleAtEdge are the routes for callers from outside.
func visibleAtEdge(all []plannedRoute) []plannedRoute {
	inside := func(planned plannedRoute) bool { return planned.sidecarOnly }
	return visible(slices.DeleteFunc(slices.Clone(all), inside), func(s *source) bool { return s.fits(nil) })
}

// outbound are the route tables of scopes, and all clusters that they lead to.
type outbound struct {
	tables   []*scopeTable // by port
	clusters []*ir.Cluster // by name
	// proxied is all tables in one, but for the virtual hosts that vary; nil
	// where nobody asks for it.
	proxied  *ir.RouteTable
	problems diag.List
}

// scopeTable is a table as all callers see it whose scope has it, but for the virtual hosts that
// vary.
type scopeTable struct {
	*tableLayout
	parts  []*hostPart // of the entries
	table  *ir.RouteTable
	varies []int // entries, for each caller by itself
	// clusters of the parts that do not vary, by name.
	clusters []*ir.Cluster
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

// proxiedTable is all tables in one, of the parts that they have for somebody.
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

// common are the parts as all callers see them together.
func (t *scopeTable) common() []*hostPart { return t.parts }

// writeTable takes over what is as it was.
func (p *plan) writeTable(t *tableLayout, last *scopeTable) *scopeTable {
	out := &scopeTable{tableLayout: t, parts: make([]*hostPart, len(t.entries))}
	for i, e := range t.entries {
		part := p.hosts.Get(p.r, hostKey{e, nil})
		out.parts[i] = part
		if part.varies {
			out.varies = append(out.varies, i)
		} else {
			p.problems.Add(part.problems...)
		}
	}
	if last != nil && slices.Equal(out.parts, last.parts) {
		return last
	}
	out.table = t.tableOf(out.parts)
	if last != nil && sameTable(out.table, last.table) {
		out.table = last.table
	}
	out.clusters = out.union(last)
	out.problems = p.problems.List()
	return out
}

// tableOf has the virtual hosts of the parts.
func (t *tableLayout) tableOf(parts []*hostPart) *ir.RouteTable {
	table := &ir.RouteTable{Name: strconv.Itoa(t.port), IgnorePort: t.ignorePort, VirtualHosts: make([]*ir.VirtualHost, len(parts))}
	for i, part := range parts {
		table.VirtualHosts[i] = part.host
	}
	if t.unknown != nil {
		table.VirtualHosts = append(table.VirtualHosts, t.unknown)
		sortByName(table)
	}
	return table
}

// union is all clusters of virtual hosts that do not vary: those of last if they
// are the same lists.
func (t *scopeTable) union(last *scopeTable) []*ir.Cluster {
	if last != nil && slices.EqualFunc(t.parts, last.parts, (*hostPart).leadsWhere) {
		return last.clusters
	}
	named := map[string]*ir.Cluster{}
	for _, part := range t.parts {
		for _, c := range part.clusters {
			if !part.varies && named[c.Name] == nil {
				named[c.Name] = c
			}
		}
	}
	return slices.SortedFunc(maps.Values(named), byName)
}

// leadsWhere reports whether two parts need the same clusters.
func (p *hostPart) leadsWhere(other *hostPart) bool {
	return p == other || p.varies == other.varies && sameList(p.clusters, other.clusters)
}
