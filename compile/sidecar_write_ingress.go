package compile

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// sidecarListeners writes the listeners for the ports that a Sidecar opens, if the
// workload belongs to a service. No other inbound port is open.
func (c *writer) sidecarListeners(sc *sidecar) {
	if len(c.own()) == 0 {
		return
	}
	rules := c.localRoutes(len(sc.ingress))
	for _, in := range sc.ingress {
		if in.protocol == mesh.UDP {
			continue
		}
		i := c.ownAt(in)
		c.inbound[in.port] = i
		cluster := c.needEndpoint(in, sc.ref)
		l := &ir.Listener{IP: in.bind, Port: in.port, Bind: in.binds, Direction: ir.Inbound, Origins: []diag.Ref{sc.ref}}
		if in.protocol.IsHTTP() {
			l.HTTP = c.http("")
			l.HTTP.Inline = c.inboundTable(i, cluster, rules)
		} else {
			l.TCP = &ir.TCPListener{Mongo: in.protocol == mesh.Mongo, Routes: []ir.TCPRoute{{Clusters: ir.Whole(cluster)}}}
		}
		c.listen(c.secured(l, i))
	}
}

// ownAt returns the workload's instance at a port: the instance that has the port,
// else the first one with this port instead of its own.
func (c *writer) ownAt(in ingressListener) *mesh.Instance {
	at := c.own()[0]
	for _, i := range c.own() {
		if i.EndpointPort == in.port {
			at = i
			break
		}
	}
	out := *at
	out.EndpointPort = in.port
	out.Port = &mesh.Port{Name: at.Port.Name, Number: in.port, Protocol: in.protocol}
	return &out
}

// needEndpoint adds the cluster of the endpoint behind a port and returns its name.
// The endpoint is a socket, a port of the loopback interface, or a port of the
// address that was called.
func (c *writer) needEndpoint(in ingressListener, origin diag.Ref) string {
	name := fmt.Sprintf("in.%d", in.port)
	out := &ir.Cluster{
		Name: name, Type: ir.StaticHosts, ConnectTimeout: c.plan.settings.ConnectTimeout,
		HTTP2: in.protocol == mesh.HTTP2 || in.protocol == mesh.GRPC, Origins: []diag.Ref{origin},
	}
	host, text, _ := net.SplitHostPort(in.endpoint)
	port, _ := strconv.Atoi(text)
	switch {
	case in.refused:
		out = out.Closed()
	case strings.HasPrefix(in.endpoint, unixScheme):
		out.Hosts = []ir.Endpoint{{Host: in.endpoint}}
	case net.ParseIP(host).IsUnspecified():
		out.Type, out.DestinationPort = ir.OriginalDestination, port
		if port == in.port {
			out.DestinationPort = 0
		}
	default:
		out.Hosts = []ir.Endpoint{{Host: host, Port: port}}
	}
	c.put(out)
	return name
}
