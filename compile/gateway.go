package compile

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// gateway is a Gateway with the servers that can be used.
type gateway struct {
	ref     diag.Ref
	servers []*gatewayServer
}

type gatewayServer struct {
	ref   diag.Ref
	field string
	port  int
	hosts []string
	tls   *ir.ServerTLS
}

// planGateways reads what ports routers open.
func (p *plan) planGateways() {
	specs(p, "Gateway", func(o *schema.Object, spec *networking.Gateway) {
		gw := &gateway{ref: o.Key().Ref()}
		for i, server := range spec.GetServers() {
			if s := p.gatewayServer(gw.ref, fmt.Sprintf("spec.servers[%d]", i), server); s != nil {
				gw.servers = append(gw.servers, s)
			}
		}
		p.gateways = append(p.gateways, gw)
		if len(spec.GetSelector()) > 0 {
			p.notHonoured(gw.ref, "spec.selector", "every router proxy opens the ports")
		}
	})
	p.claimGatewayPorts()
}

// gatewayServer is nil for one that cannot be served.
func (p *plan) gatewayServer(ref diag.Ref, at string, server *networking.Server) *gatewayServer {
	protocol, _ := mesh.ParseProtocol(server.GetPort().GetProtocol())
	if !protocol.IsHTTP() && protocol != mesh.HTTPS {
		p.notHonoured(ref, at+".port.protocol", "the server is left out: gateways serve HTTP, HTTP2, GRPC and HTTPS")
		return nil
	}
	p.unsupported(ref, at, []field{
		{server.GetBind() != "" && server.GetBind() != anyAddress, "bind", "the port is opened at every address"},
		{server.GetDefaultEndpoint() != "", "defaultEndpoint", "requests go where VirtualServices say"},
	})
	tls, ok := p.gatewayTLS(ref, at+".tls", server.GetTls(), protocol == mesh.HTTPS)
	if !ok {
		return nil
	}
	return &gatewayServer{ref: ref, field: at, port: int(server.GetPort().GetNumber()), hosts: server.GetHosts(), tls: tls}
}

// claimGatewayPorts reports servers whose TLS is not that of their port's
// listener, which is the first one's.
func (p *plan) claimGatewayPorts() {
	first := map[int]*gatewayServer{}
	for _, gw := range p.gateways {
		for _, server := range gw.servers {
			one := first[server.port]
			if one == nil {
				first[server.port] = server
			} else if !sameTLS(one.tls, server.tls) {
				p.conflict(server.ref, server.field+".tls", fmt.Sprintf(
					"the hosts of the server are served with the TLS of %s: a port has one certificate", one.ref))
			}
		}
	}
}

func sameTLS(a, b *ir.ServerTLS) bool {
	return (a == nil) == (b == nil) && (a == nil || a.CertificateFile == b.CertificateFile &&
		a.KeyFile == b.KeyFile && a.CAFile == b.CAFile)
}

// gateways opens the ports of all Gateways, for the hosts that VirtualServices
// bind to them.
func (c *compiler) gateways() {
	tables := map[int]*edgeTable{}
	for _, gw := range c.plan.gateways {
		for _, server := range gw.servers {
			if tables[server.port] == nil {
				tables[server.port] = newEdgeTable(server.port)
				c.edgeListener(server.port, ir.Gateway, server.tls, gw.ref)
			}
			c.serve(tables[server.port], gw, server)
		}
	}
	for _, port := range slices.Sorted(maps.Keys(tables)) {
		c.problems = append(c.problems, tables[port].problems...)
		c.config.RouteTables = append(c.config.RouteTables, tables[port].routeTable())
	}
}

// serve fills in the hosts of one server.
func (c *compiler) serve(t *edgeTable, gw *gateway, server *gatewayServer) {
	name := gw.ref.Namespace + "/" + gw.ref.Name
	for _, pattern := range server.hosts {
		for _, vs := range c.plan.bound[name] {
			for _, host := range vs.boundHosts(pattern, gw.ref.Namespace) {
				domains := []string{net.JoinHostPort(host, strconv.Itoa(server.port)), host}
				virtual := t.host(fmt.Sprintf("%s|%d|%s", gw.ref.Name, server.port, host), vs.ref, domains)
				if t.owners[strings.ToLower(host)] != vs.ref || len(virtual.Routes) > 0 {
					continue
				}
				for _, planned := range visibleAtEdge(c.domain.gatewayRoutes(vs, name, server.port)) {
					c.needAll(planned.targets)
					virtual.Routes = append(virtual.Routes, c.atEdge(planned.route))
				}
			}
		}
	}
}

// boundHosts are the hosts of the VirtualService that a server's host stands
// for: the same, or any with the ending after a leading wildcard. Before a
// slash stands the namespace that the VirtualService must be in.
func (vs *virtualService) boundHosts(pattern, namespace string) []string {
	if of, host, ok := strings.Cut(pattern, "/"); ok {
		pattern = host
		if of == "." {
			of = namespace
		}
		if of != "*" && of != vs.ref.Namespace {
			return nil
		}
	}
	var out []string
	for _, host := range vs.spec.GetHosts() {
		ending, wildcard := strings.CutPrefix(pattern, "*")
		if host == pattern || wildcard && strings.HasSuffix(host, ending) {
			out = append(out, host)
		}
	}
	return out
}
