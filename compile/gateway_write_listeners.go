package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// gateways opens the ports of the router's Gateways for the hosts that
// VirtualServices bind to them. It returns the route tables.
func (c *writer) gateways() []*ir.RouteTable {
	set := c.gatewaySet()
	edges := c.plan.edges.Get(c.plan.r, set)
	c.plan.problems.Add(c.plan.edgeProblems.Get(c.plan.r, set)...)
	var out []*ir.RouteTable
	for _, listener := range edges.listeners {
		l := &ir.Listener{IP: listener.ip, Port: listener.port, Bind: true, Direction: ir.Gateway, Origins: listener.origin}
		var chains []*ir.FilterChain
		out = append(out, c.edgeTables(listener)...)
		for _, group := range listener.groups {
			chains = append(chains, c.chains(listener, group)...)
		}
		if len(chains) == 0 {
			continue
		}
		if l.Chains = preciseFirst(chains); len(listener.groups) == 1 && listener.groups[0].kind != passthroughServer {
			l.HTTP, l.TCP, l.TLS, l.Chains = chains[0].HTTP, chains[0].TCP, chains[0].TLS, nil
		}
		c.listen(l.Renamed(c.renamed))
	}
	slices.SortFunc(out, byTableName)
	return out
}

// chains returns the filter chains of a group.
func (c *writer) chains(listener *edgeListener, group *edgeGroup) []*ir.FilterChain {
	out := &ir.FilterChain{ServerNames: group.serverNames(), TLS: group.tls, Origins: []diag.Ref{group.ref()}}
	switch group.kind {
	case passthroughServer:
		return c.passedOn(listener, group)
	case tcpServer:
		if out.TCP = c.connections(listener, group); len(out.TCP.Routes) == 0 {
			return nil
		}
	default:
		out.HTTP = c.http(group.table)
		out.HTTP.UseRemoteAddress = true
	}
	return []*ir.FilterChain{out}
}

// preciseFirst sorts chains with more precise names before those whose wildcards
// match them too. If a chain has routes by destination, the author's order stays.
func preciseFirst(chains []*ir.FilterChain) []*ir.FilterChain {
	type named struct {
		name string
		of   *ir.FilterChain
	}
	var all []named
	for _, c := range chains {
		if c.TCP != nil && slices.ContainsFunc(c.TCP.Routes, func(r ir.TCPRoute) bool { return len(r.Destinations) > 0 }) {
			return chains
		}
		for _, name := range c.ServerNames {
			all = append(all, named{name, c})
		}
		if len(c.ServerNames) == 0 {
			all = append(all, named{"*", c})
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return precision(b.name) - precision(a.name) })
	var out []*ir.FilterChain
	var last *ir.FilterChain
	for _, n := range all {
		if n.of != last {
			last = n.of
			own := *last
			own.ServerNames = nil
			out = append(out, &own)
		}
		if n.name != "*" {
			own := out[len(out)-1]
			own.ServerNames = append(own.ServerNames, n.name)
		}
	}
	return out
}

// nameTables names the route tables of the groups. For TLS, the name says what a
// connection must meet. Groups that ask for the same share a table. Under the name of
// another group, requests could reach hosts that ask for more. Nothing else is in the
// name, so that open connections keep their routes when certificates are replaced, and
// when other servers come and go.
func (listener *edgeListener) nameTables() {
	name := strconv.Itoa(listener.port)
	if !unspecified(listener.ip) {
		name += "|" + listener.ip
	}
	for _, group := range listener.groups {
		if group.table = name; group.tls != nil && group.kind == httpServer {
			group.table += "|tls=" + markOf(asked(group.tls))
		}
	}
}

// asked returns the settings of a server that a connection must meet.
func asked(tls *ir.ServerTLS) *ir.ServerTLS {
	return &ir.ServerTLS{Client: tls.Client, MinVersion: tls.MinVersion, MaxVersion: tls.MaxVersion, Ciphers: tls.Ciphers}
}

// markOf returns a name for settings. Nobody can find other settings of the same name.
func markOf(tls *ir.ServerTLS) string {
	sum := sha256.Sum256(encodedTLS(tls))
	return hex.EncodeToString(sum[:16])
}

// encodedTLS returns equal bytes exactly for equal settings.
func encodedTLS(tls *ir.ServerTLS) []byte {
	text, _ := json.Marshal(tls) // Strings always encode.
	return text
}

// edgeTables returns the route tables of a listener.
func (c *writer) edgeTables(listener *edgeListener) []*ir.RouteTable {
	var out []*ir.RouteTable
	names := c.tableNames(listener)
	done := map[string]bool{}
	for i, group := range listener.groups {
		if group.kind != httpServer || done[group.table] {
			continue
		}
		done[group.table] = true
		var alike []*edgeGroup
		for _, other := range listener.groups[i:] {
			if other.kind == httpServer && other.table == group.table {
				alike = append(alike, other)
			}
		}
		out = append(out, c.edgeTable(listener, alike, names))
	}
	return out
}

// edgeTable returns the route table that groups share.
func (c *writer) edgeTable(listener *edgeListener, groups []*edgeGroup, names *tableNames) *ir.RouteTable {
	t := newEdgeTable(listener.port)
	t.dotKept = c.plan.pilot().HostsAsWritten
	var unserved []string
	for _, group := range groups {
		served := map[string]*ir.VirtualHost{} // by domain in lower case
		note := func(host *ir.VirtualHost) {
			for _, domain := range host.Domains {
				served[strings.ToLower(domain)] = host
			}
		}
		for _, bound := range c.plan.byHost(group.bound) {
			if !names.passedOn(bound[0].host) {
				note(c.serve(t, bound))
			}
		}
		for _, host := range group.claimed {
			if host.toHTTPS && !c.plan.keptFrom(listener, host) {
				note(t.redirect(host.gw, host.host))
			}
		}
		unserved = append(unserved, t.keepNames(group, served, names)...)
	}
	t.refuseOthers(groups, names)
	t.host("unserved|"+strconv.Itoa(t.port), groups[0].ref(), unserved) // Without routes, nothing is found.
	table := t.routeTable()
	table.Name = groups[0].table
	table.IgnorePort = true // The port before a gateway may be another one.
	return c.closed(table)
}

// serve writes one host of a server, for the VirtualServices that it is bound to.
func (c *writer) serve(t *edgeTable, bound []*boundHost) *ir.VirtualHost {
	b := bound[0]
	if slices.ContainsFunc(bound, func(b *boundHost) bool { return b.toHTTPS }) {
		return t.redirect(b.gw, b.host)
	}
	host := t.edgeHost(b.gw, b.host, b.vs.ref)
	var lists [][]plannedRoute
	for _, b := range bound {
		lists = append(lists, visibleAtEdge(c.domain.gatewayRoutes(b, t.port), c.fits))
	}
	for _, planned := range mergedRoutes(lists) {
		c.needAll(planned.targets)
		host.Routes = append(host.Routes, c.atEdge(planned.route))
	}
	return host
}

// edgeHost returns the virtual host of a host at a Gateway.
func (t *edgeTable) edgeHost(gw *gateway, host string, ref diag.Ref) *ir.VirtualHost {
	domains := []string{net.JoinHostPort(host, strconv.Itoa(t.port)), host}
	return t.host(fmt.Sprintf("%s|%d|%s", gw.ref.Name, t.port, host), ref, domains)
}

// redirect redirects all requests for a host to HTTPS, unless the host has routes.
func (t *edgeTable) redirect(gw *gateway, name string) *ir.VirtualHost {
	host := t.edgeHost(gw, name, gw.ref)
	if len(host.Routes) == 0 {
		host.Routes = []*ir.Route{{Redirect: &ir.Redirect{Scheme: "https"}, Origins: []diag.Ref{gw.ref}}}
	}
	return host
}
