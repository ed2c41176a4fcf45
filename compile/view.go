package compile

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// anyAddress is the address of a listener that accepts captured connections to any
// destination.
const anyAddress = "0.0.0.0"

// compiled is the configuration of a view and its problems.
type compiled struct {
	config   *ir.Config
	clusters [][]*ir.Cluster // lists by name, which are merged into config.Clusters
	problems diag.List
}

// writeView compiles a view and reuses all unchanged parts of last.
func (p *plan) writeView(key string, last *compiled) *compiled {
	who := p.views.Get(p.r, key)
	for _, i := range who.own {
		p.registry.byHost.under(&p.reader, i.Service.Hostname) // Depend on the host: own services are as the registry has them now.
	}
	s := who.scope
	s.sidecar, s.selection = p.sidecarOf(who), p.selectionOf(who)
	c := p.writer(s, who)
	c.last, c.inbound, c.ownTables = last, map[int]*mesh.Instance{}, map[*ir.RouteTable]bool{}
	config := &ir.Config{RouteDelay: p.settings.RDSRefreshDelay, Delay: p.settings.DiscoveryRefreshDelay}
	if s.sidecar != nil {
		config.Origins = []diag.Ref{s.sidecar.ref}
	}
	switch who.role {
	case mesh.Sidecar:
		c.sidecar(config)
	case mesh.Ingress:
		c.ingress(config)
	case mesh.Router:
		c.router(config)
	}
	out := &compiled{config, c.lists, p.problems.List()}
	if last != nil {
		out.takeOver(last, c.ownTables)
	}
	if last != nil && sameConfig(out.config, last.config) {
		if out.config = last.config; sameProblems(out.problems, last.problems) {
			return last
		}
	}
	return out
}

// sidecar writes the configuration of a sidecar: calls of its workload, and calls
// to it. If two listeners want the same address, the one written first keeps it.
// Route tables exist even without a listener, as in Pilot.
func (c *writer) sidecar(config *ir.Config) {
	laid, clusters := c.outboundTables(config)
	if c.plan.settings.ProxyListenPort > 0 {
		c.handOff()
		clusters = append(clusters, c.outboundTCP())
		c.needUnknown()
		c.httpListeners(laid)
		c.inboundListeners()
		c.managementPorts()
	}
	if c.plan.settings.ProxyHTTPPort > 0 {
		config.RouteTables = append(config.RouteTables, c.proxiedTable(c.sharedHTTP()))
		c.httpProxy()
	}
	c.close(config, append(clusters, c.sortedClusters()))
}

// outboundTables sets the route tables of ports: with all hosts, or with only those that
// the workload has called. It returns their layouts, and lists of their clusters.
func (c *writer) outboundTables(config *ir.Config) ([]*tableLayout, [][]*ir.Cluster) {
	called := c.caller.called
	config.OnDemand = called != nil
	if called != nil && c.plan.onDemand(c.scope.sidecar) == mesh.OnDemandOff {
		called = mesh.CallsEverything() // The Sidecar has changed since the proxy connected.
	}
	if called != nil && !called.Everything() {
		laid := c.layOutCalled()
		tables, clusters := c.calledTables(laid)
		config.RouteTables = tables
		return laid, clusters
	}
	http := c.outboundHTTP()
	config.RouteTables = c.tablesOf(http)
	if called != nil {
		for i, t := range config.RouteTables {
			marked := *t
			marked.OnDemand = true
			config.RouteTables[i] = c.ownTable(&marked)
		}
	}
	laid := make([]*tableLayout, len(http.tables))
	for i, t := range http.tables {
		laid[i] = t.tableLayout
	}
	return laid, [][]*ir.Cluster{http.clusters}
}

// router writes the configuration of a router. It reaches every service; Gateways
// say what it listens on.
func (c *writer) router(config *ir.Config) {
	http := c.outboundHTTP()
	c.tablesOf(http)
	reached := [][]*ir.Cluster{http.clusters, c.outboundTCP()}
	c.listeners = nil
	config.RouteTables = c.gateways()
	c.close(config, append(reached, c.sortedClusters()))
}

// outboundHTTP returns the part that all callers of the scope share, and adds its problems.
func (c *writer) outboundHTTP() *outbound {
	http := c.sharedHTTP()
	c.plan.problems.Add(http.problems...)
	return http
}

func (c *writer) sharedHTTP() *outbound {
	return c.plan.http.Get(c.plan.r, c.plan.layouts.Get(c.plan.r, c.scope))
}

// tablesOf returns the route tables of the scope as this caller sees them. It also
// adds the clusters that only this caller needs.
func (c *writer) tablesOf(http *outbound) []*ir.RouteTable {
	tables := make([]*ir.RouteTable, len(http.tables))
	for i, t := range http.tables {
		tables[i] = t.table
		if len(t.varies) == 0 {
			continue
		}
		parts := c.partsOf(t)
		for _, at := range t.varies {
			c.plan.problems.Add(parts[at].problems...)
			for _, cluster := range parts[at].clusters {
				c.put(cluster)
			}
		}
		tables[i] = c.ownTable(t.tableOf(virtualHosts(parts)))
	}
	slices.SortFunc(tables, byTableName)
	return tables
}

func virtualHosts(parts []*hostPart) []*ir.VirtualHost {
	out := make([]*ir.VirtualHost, len(parts), len(parts)+1)
	for i, part := range parts {
		out[i] = part.host
	}
	return out
}

// partsOf returns the parts of a table as this caller sees them.
func (c *writer) partsOf(t *scopeTable) []*hostPart {
	parts := t.common()
	for _, i := range t.varies {
		parts[i] = c.plan.hosts.Get(c.plan.r, hostKey{t.entries[i], c.caller})
	}
	return parts
}

// proxiedTable returns all tables merged into one, as this caller sees them.
func (c *writer) proxiedTable(http *outbound) *ir.RouteTable {
	if !slices.ContainsFunc(http.tables, func(t *scopeTable) bool { return len(t.varies) > 0 }) {
		return http.proxied
	}
	return c.ownTable(proxiedTable(http.tables, c.partsOf))
}

// ownTable marks a table that belongs to this view alone.
func (c *writer) ownTable(t *ir.RouteTable) *ir.RouteTable {
	c.ownTables[t] = true
	return t
}

func byTableName(a, b *ir.RouteTable) int { return cmp.Compare(a.Name, b.Name) }

// closed returns a table with the final names of clusters. Any part that breaks a
// promise of package ir fails closed.
func (c *writer) closed(t *ir.RouteTable) *ir.RouteTable {
	renamed := *t
	renamed.VirtualHosts = nil
	for _, host := range t.VirtualHosts {
		renamed.VirtualHosts = append(renamed.VirtualHosts, c.leading(host))
	}
	out, problems := ir.CloseTable(&renamed, c.clusters)
	c.plan.problems.Add(problems...)
	return c.ownTable(out)
}

// close puts the collected parts into the configuration, and enforces the promises
// of package ir for parts not yet checked.
func (c *writer) close(config *ir.Config, clusters [][]*ir.Cluster) {
	for i, list := range clusters {
		clusters[i] = c.inOrder(list)
	}
	config.Clusters = c.merged(clusters)
	c.guard()
	var problems diag.List
	config.Listeners, problems = ir.CloseListeners(c.listeners, config)
	c.plan.problems.Add(problems...)
	config.Secrets = c.plan.secretsOf(config)
}

// merged returns the merged clusters of the lists. It returns those of last if the
// lists are the same.
func (c *writer) merged(lists [][]*ir.Cluster) []*ir.Cluster {
	c.lists = lists
	if c.last == nil || len(c.last.clusters) != len(lists) {
		return merged(lists...)
	}
	for i, before := range c.last.clusters {
		lists[i] = keep(lists[i], before, nameOfCluster)
	}
	if slices.EqualFunc(lists, c.last.clusters, sameList) {
		return c.last.config.Clusters
	}
	return merged(lists...)
}

func (c *writer) handOff() {
	c.listen(&ir.Listener{
		IP: anyAddress, Port: c.plan.settings.ProxyListenPort,
		Bind: true, Direction: ir.Outbound, UseOriginalDst: true, TCP: c.unknownConnections(),
	})
}

// takeOver replaces parts with equal ones of last. Virtual hosts that are not the
// view's own are already identical if they are equal.
func (v *compiled) takeOver(last *compiled, own map[*ir.RouteTable]bool) {
	v.config.Listeners = keep(v.config.Listeners, last.config.Listeners, nameOfListener)
	v.config.Clusters = keep(v.config.Clusters, last.config.Clusters, nameOfCluster)
	v.config.Secrets = keep(v.config.Secrets, last.config.Secrets, func(s *ir.Secret) string { return s.Name })
	for i, t := range v.config.RouteTables {
		v.config.RouteTables[i] = takenOver(t, last.config.RouteTables, own[t])
	}
	if slices.Equal(v.config.RouteTables, last.config.RouteTables) {
		v.config.RouteTables = last.config.RouteTables
	}
}

// takenOver returns the table of last with the same name if it is equal. A table of
// the view's own also reuses virtual hosts.
func takenOver(t *ir.RouteTable, last []*ir.RouteTable, own bool) *ir.RouteTable {
	at := slices.IndexFunc(last, func(l *ir.RouteTable) bool { return l.Name == t.Name })
	if at < 0 {
		return t
	}
	if own {
		kept := *t
		kept.VirtualHosts = keep(t.VirtualHosts, last[at].VirtualHosts, func(h *ir.VirtualHost) string { return h.Name })
		t = &kept
	}
	if sameTable(t, last[at]) {
		return last[at]
	}
	return t
}

func nameOfCluster(c *ir.Cluster) string { return c.Name }

// nameOfListener identifies a listener in a configuration: an HTTP listener may
// want the same address as another listener.
func nameOfListener(l *ir.Listener) string {
	if l.HTTP != nil {
		return "http " + l.Address()
	}
	return l.Address()
}

// keep replaces entries with equal ones of last that have the same name. It returns
// last itself if all entries are equal.
func keep[T any](list, last []*T, name func(*T) string) []*T {
	if sameList(list, last) {
		return last
	}
	var byName map[string]*T
	out, all := slices.Clone(list), len(list) == len(last)
	for i, item := range list {
		if i < len(last) && same(item, last[i]) {
			out[i] = last[i]
			continue
		}
		all = false
		if byName == nil {
			byName = map[string]*T{}
			for _, l := range last {
				byName[name(l)] = l
			}
		}
		if before := byName[name(item)]; before != nil && same(item, before) {
			out[i] = before
		}
	}
	if all {
		return last
	}
	return out
}

func same[T any](a, b *T) bool { return a == b || reflect.DeepEqual(a, b) }

// sameTable reports whether two tables are equal. It is fast because most virtual
// hosts of equal tables are identical.
func sameTable(a, b *ir.RouteTable) bool {
	return a == b || a.Name == b.Name && a.IgnorePort == b.IgnorePort && a.OnDemand == b.OnDemand && slices.EqualFunc(a.VirtualHosts, b.VirtualHosts, same[ir.VirtualHost])
}

func sameConfig(a, b *ir.Config) bool {
	return a.Delay == b.Delay && a.RouteDelay == b.RouteDelay && slices.Equal(a.Origins, b.Origins) && sameList(a.Listeners, b.Listeners) &&
		sameList(a.RouteTables, b.RouteTables) && sameList(a.Secrets, b.Secrets) && sameList(a.Clusters, b.Clusters)
}
