package compile

import (
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// serverCounts counts the hosts of servers by what the server does with
// connections.
type serverCounts struct{ http, redirecting, tcp, passthrough int }

func (c *serverCounts) add(other serverCounts) {
	c.http += other.http
	c.redirecting += other.redirecting
	c.tcp += other.tcp
	c.passthrough += other.passthrough
}

// gatewaySize counts the servers of a Gateway.
type gatewaySize struct {
	hosts            map[gatewayHost]serverCounts
	tcp, passthrough map[int]int // servers by port
}

func (g *gateway) measure() gatewaySize {
	out := gatewaySize{hosts: map[gatewayHost]serverCounts{}, tcp: map[int]int{}, passthrough: map[int]int{}}
	for _, s := range g.servers {
		var one serverCounts
		switch {
		case s.kind == tcpServer:
			one.tcp = 1
			out.tcp[s.port]++
		case s.kind == passthroughServer:
			one.passthrough = 1
			out.passthrough[s.port]++
		case s.toHTTPS:
			one.redirecting = 1
		default:
			one.http = 1
		}
		for _, host := range s.hosts {
			all := out.hosts[host]
			all.add(one)
			out.hosts[host] = all
		}
	}
	return out
}

// wanted returns at how many hosts of its servers a VirtualService of a namespace
// wants one of its hosts.
func (g *gateway) wanted(host, namespace string) serverCounts {
	var out serverCounts
	for text := range textsFor(host) {
		out.add(g.gatewaySize.hosts[gatewayHost{"*", text}])
		out.add(g.gatewaySize.hosts[gatewayHost{namespace, text}])
	}
	return out
}

// textsFor returns the texts that may stand for a host at a server: the host
// itself, or a leading wildcard with any of its endings.
func textsFor(host string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		key := strings.ToLower(host)
		if !strings.HasPrefix(key, "*") && !yield(key) {
			return
		}
		wildcards(key)(yield)
	}
}

// gatewayFit says which servers of a Gateway fit the budget of one object.
type gatewayFit struct {
	servers int // number of first servers that fit
	parts   int // hosts bound to them, beyond one for each that VirtualServices name
	total   int // hosts bound to all servers
}

// fitGateway counts how many hosts of VirtualServices are bound to each server.
func (rd *reader) fitGateway(gw *gateway) gatewayFit {
	const few = 4096
	out := gatewayFit{servers: len(gw.servers)}
	bound, hosts, claims := rd.byGateway.under(rd, gw.name()), 0, 0
	for _, vs := range bound {
		hosts += len(vs.spec.GetHosts())
	}
	for _, s := range gw.servers {
		claims += len(s.hosts)
	}
	if times(hosts, claims) <= few {
		return out
	}
	wanted := map[gatewayHost]int{}
	for _, vs := range bound {
		if !rd.pilot().AnyNamespaceRules && !mesh.Exported(vs.exportTo(), vs.ref.Namespace, gw.ref.Namespace) {
			continue
		}
		for _, host := range vs.spec.GetHosts() {
			for text := range textsFor(host) {
				wanted[gatewayHost{"*", text}]++
				wanted[gatewayHost{vs.ref.Namespace, text}]++
			}
		}
	}
	for i, s := range gw.servers {
		for _, host := range s.hosts {
			out.total += wanted[host]
		}
		if parts := max(0, out.total-hosts); parts <= rd.budget.ledger.Budget.Object {
			out.parts = parts
		} else {
			out.servers = min(out.servers, i)
		}
	}
	return out
}

func (rd *reader) gatewayCost(gw *gateway) cost {
	return cost{parts: rd.gatewayFits.Get(rd.r, gw).parts}
}

// serversOf returns the servers of a Gateway that fit the budget. It reports the
// others.
func (p *plan) serversOf(gw *gateway) []*gatewayServer {
	fit, excess := p.gatewayFits.Get(p.r, gw), p.excess(gw.declared)
	of := schema.Thousands(fit.total) + " hosts of VirtualServices at all servers"
	switch {
	case excess.Withheld():
		p.report(excess.Problem(gw.ref, of, "no port is opened for it"))
		return nil
	case fit.servers < len(gw.servers):
		excess = mesh.Excess{Parts: fit.total, Budget: p.budget.ledger.Budget.Object}
		p.report(excess.Problem(gw.ref, of, "no port is opened for "+gw.servers[fit.servers].field+" and the servers behind it"))
	}
	return gw.servers[:fit.servers]
}
