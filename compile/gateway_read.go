package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// gateway is a Gateway with the servers that can be used.
type gateway struct {
	declared
	spec     *networking.Gateway
	selector mesh.Labels // of routers; none: all
	servers  []*gatewayServer
	gatewaySize
}

// name is what VirtualServices bind their hosts to.
func (g *gateway) name() string { return g.ref.Namespace + "/" + g.ref.Name }

// serverKind is what routes a server has.
type serverKind int

const (
	httpServer        serverKind = iota // spec.http
	tcpServer                           // spec.tcp
	passthroughServer                   // spec.tls
)

type gatewayServer struct {
	gw    *gateway
	field string
	kind  serverKind
	mongo bool
	ip    string
	port  int
	hosts []gatewayHost
	tls   *ir.ServerTLS // that ends here
	// toHTTPS: every request is redirected there.
	toHTTPS bool
}

// gatewayHost is what stands for the hosts that may be reached, of
// VirtualServices in a namespace; "*" is all of them.
type gatewayHost struct{ namespace, host string }

func (s *gatewayServer) ref() diag.Ref { return s.gw.ref }

// readGateway reads what ports routers open.
func readGateway(p *plan, of declared, spec *networking.Gateway) *gateway {
	gw := &gateway{declared: of, spec: spec, selector: spec.GetSelector()}
	for i, server := range spec.GetServers() {
		if s := p.gatewayServer(gw, fmt.Sprintf("spec.servers[%d]", i), server); s != nil {
			gw.servers = append(gw.servers, s)
		}
	}
	gw.gatewaySize = gw.measure()
	return gw
}

// gatewayServer is nil for one that cannot be served.
func (p *plan) gatewayServer(gw *gateway, at string, server *networking.Server) *gatewayServer {
	addr, err := netip.ParseAddr(cmp.Or(server.GetBind(), anyAddress))
	if err != nil || !schema.IsAddress(addr.String()) {
		return nil
	}
	out := &gatewayServer{
		gw: gw, field: at, ip: addr.String(), // Servers at one address may spell it in their own ways.
		port: int(server.GetPort().GetNumber()),
	}
	for _, host := range server.GetHosts() {
		out.hosts = append(out.hosts, hostOfGateway(host, gw.ref.Namespace))
	}
	if !p.speak(out, server) {
		return nil
	}
	return out
}

// hostOfGateway reads a host of a server. Before a slash stands the namespace
// that VirtualServices must be in.
func hostOfGateway(text, own string) gatewayHost {
	namespace, host, ok := strings.Cut(text, "/")
	switch {
	case !ok:
		namespace, host = "*", text
	case namespace == ".":
		namespace = own
	}
	return gatewayHost{namespace, strings.ToLower(host)}
}

// speak fills in what becomes of the connections; false for a server that cannot
// be served.
func (p *plan) speak(out *gatewayServer, server *networking.Server) bool {
	protocol, _ := mesh.ParseProtocol(server.GetPort().GetProtocol())
	tls := server.GetTls()
	switch {
	case protocol == mesh.UDP || tls.GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH:
		return false // As schema says.
	case protocol.IsHTTP():
		out.toHTTPS = tls.GetHttpsRedirect()
		return true
	case protocol != mesh.HTTPS && protocol != mesh.TLS:
		out.kind, out.mongo = tcpServer, protocol == mesh.Mongo
		return true
	}
	if tls.GetMode() == networking.ServerTLSSettings_PASSTHROUGH {
		out.kind = passthroughServer
		return true
	}
	var ok bool
	if out.tls, ok = p.gatewayTLS(out.ref(), out.field+".tls", tls); !ok {
		return false
	}
	if protocol == mesh.TLS {
		out.kind = tcpServer
	} else {
		out.tls.ALPN = httpALPN
	}
	return true
}

// family is what servers of one port have in common.
func (s *gatewayServer) family() string {
	switch {
	case s.tls != nil || s.kind == passthroughServer:
		return "TLS"
	case s.kind == httpServer:
		return "plain HTTP"
	case s.mongo:
		return "MONGO"
	}
	return "TCP"
}
