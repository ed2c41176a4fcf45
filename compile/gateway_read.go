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

// gateway is a Gateway with its usable servers.
type gateway struct {
	declared
	spec     *networking.Gateway
	selector mesh.Labels // of routers; empty for all
	servers  []*gatewayServer
	gatewaySize
}

// name is the name by which VirtualServices refer to it.
func (g *gateway) name() string { return g.ref.Namespace + "/" + g.ref.Name }

// serverKind says which routes a server has.
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
	tls   *ir.ServerTLS // TLS that the server terminates, or nil
	// toHTTPS is set if every request is redirected to HTTPS.
	toHTTPS bool
}

// gatewayHost is a pattern for hosts of VirtualServices in a namespace; "*" means
// all namespaces.
type gatewayHost struct{ namespace, host string }

func (s *gatewayServer) ref() diag.Ref { return s.gw.ref }

// readGateway reads which ports routers open.
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

// gatewayServer returns nil for a server that cannot be served.
func (p *plan) gatewayServer(gw *gateway, at string, server *networking.Server) *gatewayServer {
	addr, err := netip.ParseAddr(cmp.Or(server.GetBind(), anyAddress))
	if err != nil || !schema.IsAddress(addr.String()) {
		return nil
	}
	out := &gatewayServer{
		gw: gw, field: at, ip: addr.String(), // Servers may write the same address in different ways.
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

// hostOfGateway parses a host of a server. The part before a slash is the namespace
// in which VirtualServices must be.
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

// speak sets how connections are handled. It returns false for a server that cannot
// be served.
func (p *plan) speak(out *gatewayServer, server *networking.Server) bool {
	protocol, _ := mesh.ParseProtocol(server.GetPort().GetProtocol())
	tls := server.GetTls()
	switch {
	case protocol == mesh.UDP || tls.GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH:
		return false // Schema reports it.
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
	if field := out.gw.unknownWithin(out.field + ".tls"); field != "" {
		p.notHonoured(diag.TLSUnmet, out.ref(), field, "the server is left out: this version does not know the field")
		return false
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

// family is what servers of one port must have in common.
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
