package compile

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// gateway is a Gateway with the servers that can be used.
type gateway struct {
	declared
	servers []*gatewayServer
}

// name is what VirtualServices bind their hosts to.
func (g *gateway) name() string { return g.ref.Namespace + "/" + g.ref.Name }

type gatewayServer struct {
	ref   diag.Ref
	field string
	ip    string
	port  int
	hosts []string
	tls   *ir.ServerTLS
	// toHTTPS: every request is redirected there.
	toHTTPS bool
	bound   []*boundHost // in a plan
}

// readGateway reads what ports routers open.
func readGateway(p *plan, of declared, spec *networking.Gateway) *gateway {
	gw := &gateway{declared: of}
	for i, server := range spec.GetServers() {
		if s := p.gatewayServer(gw.ref, fmt.Sprintf("spec.servers[%d]", i), server); s != nil {
			gw.servers = append(gw.servers, s)
		}
	}
	return gw
}

// edgePlan is what all Gateways come to, with the hosts that are bound to them.
type edgePlan struct {
	gateways []*gateway // in tie-break order, with the servers that have a place
	served   map[binding]bool
	arrivals map[*virtualService][]arrival // where requests come in for it
	problems diag.List
}

// arrival is a host of a VirtualService at a port of gateways.
type arrival struct {
	port int
	host *boundHost
}

// planGateways settles which servers and hosts have a port.
func (p *plan) planGateways() *edgePlan {
	out := &edgePlan{served: map[binding]bool{}, arrivals: map[*virtualService][]arrival{}}
	for _, gw := range p.gateways.rules(p) {
		planned := &gateway{declared: gw.declared}
		for _, server := range gw.servers {
			own := *server
			planned.servers = append(planned.servers, &own)
		}
		out.gateways = append(out.gateways, planned)
	}
	p.claimGatewayPorts(out)
	p.bindHosts(out)
	out.problems = p.problems.List()
	return out
}

// gatewayServer is nil for one that cannot be served.
func (p *plan) gatewayServer(ref diag.Ref, at string, server *networking.Server) *gatewayServer {
	protocol, _ := mesh.ParseProtocol(server.GetPort().GetProtocol())
	if !protocol.IsHTTP() && protocol != mesh.HTTPS {
		p.notHonoured(ref, at+".port.protocol", "the server is left out: gateways serve HTTP, HTTP2, GRPC and HTTPS")
		return nil
	}
	tls, ok := p.gatewayTLS(ref, at+".tls", server.GetTls(), protocol == mesh.HTTPS)
	if !ok {
		return nil
	}
	out := &gatewayServer{
		ref: ref, field: at, ip: cmp.Or(server.GetBind(), anyAddress), port: int(server.GetPort().GetNumber()),
		hosts: server.GetHosts(), tls: tls, toHTTPS: tls == nil && server.GetTls().GetHttpsRedirect(),
	}
	addr, err := netip.ParseAddr(out.ip)
	if err != nil || !schema.IsAddress(out.ip) {
		return nil
	}
	out.ip = addr.String() // Servers at one address may spell it in their own ways.
	return out
}

// claimGatewayPorts gives each port the TLS of the first server there. One that
// asks more of its clients than that is left out; others are reported.
func (p *plan) claimGatewayPorts(out *edgePlan) {
	first := map[int]*gatewayServer{}
	for _, gw := range out.gateways {
		gw.servers = slices.DeleteFunc(gw.servers, func(server *gatewayServer) bool {
			one := first[server.port]
			switch {
			case one == nil:
				first[server.port] = server
			case one.ip != server.ip:
				p.conflict(server.ref, server.field+".bind", fmt.Sprintf(
					"the server is left out: %s opens its port at %s", one.ref, one.ip))
				return true
			case weaker(one.tls, server.tls):
				p.conflict(server.ref, server.field+".tls", fmt.Sprintf(
					"the server is left out: its port has the TLS of %s, which lets clients in that it would not", one.ref))
				return true
			case !sameTLS(one.tls, server.tls):
				p.conflict(server.ref, server.field+".tls", fmt.Sprintf(
					"the hosts of the server are served with the TLS of %s: a port has one certificate", one.ref))
			}
			return false
		})
	}
}

// weaker reports whether a lets in what b does not: plain text, or clients that
// b's authorities have not vouched for.
func weaker(a, b *ir.ServerTLS) bool {
	return b != nil && (a == nil || b.CAFile != "" && a.CAFile != b.CAFile)
}

func sameTLS(a, b *ir.ServerTLS) bool {
	return (a == nil) == (b == nil) && (a == nil || a.CertificateFile == b.CertificateFile &&
		a.KeyFile == b.KeyFile && a.CAFile == b.CAFile)
}

// gateways opens the ports of all Gateways, for the hosts that VirtualServices
// bind to them.
func (c *writer) gateways() []*ir.RouteTable {
	tables := map[int]*edgeTable{}
	for _, gw := range c.plan.edges.Get(c.plan.r, none{}).gateways {
		for _, server := range gw.servers {
			if tables[server.port] == nil {
				tables[server.port] = newEdgeTable(server.port)
				c.edgeListener(server.ip, server.port, ir.Gateway, server.tls, gw.ref)
			}
			for _, b := range server.bound {
				c.serve(tables[server.port], gw, server, b)
			}
		}
	}
	var out []*ir.RouteTable
	for _, port := range slices.Sorted(maps.Keys(tables)) {
		table := tables[port].routeTable()
		table.IgnorePort = true // What stands before a gateway may have another port.
		out = append(out, c.closed(table))
	}
	slices.SortFunc(out, byTableName)
	return out
}

// serve fills in one host of a server.
func (c *writer) serve(t *edgeTable, gw *gateway, server *gatewayServer, b *boundHost) {
	port := server.port
	domains := []string{net.JoinHostPort(b.host, strconv.Itoa(port)), b.host}
	host := t.host(fmt.Sprintf("%s|%d|%s", gw.ref.Name, port, b.host), b.vs.ref, domains)
	if server.toHTTPS {
		host.Routes = []*ir.Route{{Redirect: &ir.Redirect{Scheme: "https"}, Origins: []diag.Ref{gw.ref}}}
		return
	}
	for _, planned := range visibleAtEdge(c.domain.gatewayRoutes(b, port)) {
		c.needAll(planned.targets)
		host.Routes = append(host.Routes, c.atEdge(planned.route))
	}
}
