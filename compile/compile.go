// Package compile turns config objects into what a proxy must do. It is the
// only package that knows both the config kinds and the IR.
//
// The work has two halves, both linear in what they read. What is the same for
// every proxy is planned once a snapshot:
//
//	plan.go               the plan and its order
//	egressrule.go         EgressRules as services
//	routerule.go          RouteRules in order (match.go), and what is wrong
//	                      with them (rulecheck.go)
//	route.go              rules as routes of every HTTP port (action.go), to
//	                      clusters (target.go, cluster.go)
//	destinationpolicy.go  policies, and what they change in a cluster
//	ingressrule.go        IngressRules
//	reference.go          what hosts and callers an object means
//	virtualservice.go     VirtualServices (virtualmatch.go, virtualaction.go),
//	                      and what is wrong with them (virtualcheck.go,
//	                      virtualtargets.go, virtualports.go)
//	destinationrule.go    DestinationRules, and what their policies change in a
//	                      cluster (trafficpolicy.go)
//	gateway.go            Gateways (gatewaytls.go), and who has which host at
//	                      them (binding.go)
//
// What the networking kinds mean depends on the domain of the proxy, which
// completes their short names (domain.go, hostindex.go). Their routes are laid
// out when the first proxy needs them: httproute.go, tcproute.go.
//
// Proxy then only chooses: which rules fit the workload beside this proxy,
// which names its domain allows, which policies hold for it:
//
//	services.go           HTTP ports → virtual hosts (virtualhost.go), tables
//	tcp.go                other ports → TCP listeners
//	inbound.go            the proxy's own instances, management.go
//	httpproxy.go          all HTTP routes in one table
//	ingress.go            what an ingress serves (edgetable.go)
//	gateway.go            what a router serves
//
// Compiling is a pure function: the same snapshot and view give the same IR,
// in the same order, on every replica. One bad object never spoils the rest:
// what cannot be honoured is left out and becomes a Problem on its object. As
// the object is stored all the same, every problem is a warning.
package compile

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// anyAddress is where a listener takes whatever destination was captured.
const anyAddress = "0.0.0.0"

// compiler builds the configuration of one view.
type compiler struct {
	snap     *mesh.Snapshot
	view     mesh.View
	plan     *plan
	domain   *domainPlan
	tables   map[int]*table // HTTP tables by port
	tcp      map[ir.HostPort]*ir.Listener
	inbound  map[int]*mesh.Instance // the instance that has the endpoint port
	clusters map[string]*ir.Cluster
	config   ir.Config
	problems diag.Collector
}

// Proxy compiles the configuration of all proxies with one view. The problems,
// sorted by object, are those of the whole snapshot that the config kinds are
// to blame for, and those that only this view has; the registry's own are in
// Snapshot.Problems. Parts of the result are shared with that of other views.
func Proxy(s *mesh.Snapshot, v mesh.View) (*ir.Config, diag.List) {
	c := &compiler{
		snap:     s,
		view:     v,
		plan:     planOf(s),
		tables:   map[int]*table{},
		tcp:      map[ir.HostPort]*ir.Listener{},
		inbound:  map[int]*mesh.Instance{},
		clusters: map[string]*ir.Cluster{},
	}
	c.domain = c.plan.forDomain(v.Domain)
	c.config.RouteDelay = s.Settings.RDSRefreshDelay
	c.config.Delay = s.Settings.DiscoveryRefreshDelay
	switch v.Role {
	case mesh.Sidecar:
		c.sidecar()
	case mesh.Ingress:
		c.ingress()
	case mesh.Router:
		c.router()
	}
	return c.finish()
}

// sidecar serves the workload beside it: its calls, and the calls to it. The
// order decides who keeps an address that two listeners want. Route tables are
// there whether or not something listens, as Pilot's were.
func (c *compiler) sidecar() {
	c.outboundHTTP()
	c.portTables()
	for _, t := range c.config.RouteTables {
		t.IgnorePort = true // The listener says which port is meant, whatever a Host header says.
		for _, h := range t.VirtualHosts {
			h.Routes = upgradeByRules(h.Routes)
		}
	}
	if c.snap.Settings.ProxyListenPort > 0 {
		c.handOff()
		c.outboundTCP()
		c.httpListeners()
		c.inboundListeners()
		c.managementPorts()
	}
	if c.snap.Settings.ProxyHTTPPort > 0 {
		c.httpProxy()
	}
}

// router reaches every service; what it listens to, Gateways say.
func (c *compiler) router() {
	c.outboundHTTP()
	c.outboundTCP()
	c.config.Listeners = nil
	c.gateways()
}

func (c *compiler) handOff() {
	c.listen(&ir.Listener{
		IP: anyAddress, Port: c.snap.Settings.ProxyListenPort,
		Bind: true, Direction: ir.Outbound, UseOriginalDst: true,
	})
}

func (c *compiler) listen(l *ir.Listener) { c.config.Listeners = append(c.config.Listeners, l) }

func (c *compiler) finish() (*ir.Config, diag.List) {
	for _, name := range slices.Sorted(maps.Keys(c.clusters)) {
		c.config.Clusters = append(c.config.Clusters, c.clusters[name])
	}
	slices.SortFunc(c.config.RouteTables, func(a, b *ir.RouteTable) int { return cmp.Compare(a.Name, b.Name) })
	c.config.RenameClusters(securedNames(c.config.Clusters))
	problems := slices.Concat(c.plan.problems.List(), c.problems.List())
	sortProblems(problems)
	return &c.config, problems
}

// upgradeByRules are the routes to a service: where RouteRules hold for a caller,
// a connection that none of them takes is not upgraded, as they say which are.
func upgradeByRules(routes []*ir.Route) []*ir.Route {
	byRule := func(r *ir.Route) bool { return r.Origins[0].Kind == "RouteRule" }
	last := len(routes) - 1
	if !slices.ContainsFunc(routes, byRule) || byRule(routes[last]) {
		return routes
	}
	refusing := *routes[last] // It is shared with other callers.
	refusing.WebSocket = ir.UpgradeRefused
	return append(slices.Clone(routes[:last]), &refusing)
}

func sortProblems(l diag.List) {
	slices.SortStableFunc(l, func(a, b diag.Problem) int {
		return cmp.Compare(a.Object.String(), b.Object.String())
	})
}

func (c *compiler) report(p diag.Problem) { c.problems.Add(p) }
