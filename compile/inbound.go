package compile

import (
	"fmt"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// inboundListeners writes the listeners for calls to the workload beside the proxy,
// one for each endpoint port. Instances with the same key in mesh.Traits must get
// identical listeners, so the address is left open and the origin is the service.
func (c *writer) inboundListeners() {
	if sc := c.scope.sidecar; sc != nil && sc.opens {
		c.sidecarListeners(sc)
		return
	}
	rules := c.localRoutes(len(c.own()))
	for _, i := range c.own() {
		if i.Port.Protocol == mesh.UDP {
			continue
		}
		if first := c.inbound[i.EndpointPort]; first != nil {
			c.checkInbound(i, first)
			continue
		}
		c.inbound[i.EndpointPort] = i
		origins := []diag.Ref{i.Service.Origin.Ref()}
		cluster := c.needLocal(i.EndpointPort, isHTTP2(i.Port), origins)
		l := &ir.Listener{Port: i.EndpointPort, Direction: ir.Inbound, Origins: origins}
		if i.Port.Protocol.IsHTTP() {
			l.HTTP = c.http("")
			l.HTTP.Inline = c.inboundTable(i, cluster, rules)
		} else {
			l.TCP = &ir.TCPListener{
				Mongo:  i.Port.Protocol == mesh.Mongo,
				Routes: []ir.TCPRoute{{Clusters: ir.Whole(cluster)}},
			}
		}
		c.listen(c.secured(l, i))
	}
}

// checkInbound reports a port that two services describe differently. The first
// description applies.
func (c *writer) checkInbound(i, first *mesh.Instance) {
	if i.Port.Protocol == first.Port.Protocol {
		return
	}
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: i.Service.Origin.Ref(),
		Message: fmt.Sprintf("an instance's port %d is %s for %s and %s for %s; calls to it are treated as %s",
			i.EndpointPort, i.Port.Protocol, i.Service.Hostname,
			first.Port.Protocol, first.Service.Hostname, first.Port.Protocol),
	})
}

// inboundTable routes all requests to the workload. It repeats the rules of the
// workload's services, for any caller, to allow upgrades and to name traces. HTTP/2
// ports do not need them, as they have no upgrade to allow.
func (c *writer) inboundTable(i *mesh.Instance, cluster string, rules localRules) *ir.RouteTable {
	host := &ir.VirtualHost{Name: "inbound|" + strconv.Itoa(i.EndpointPort), Domains: []string{"*"}}
	if i.Port.Protocol == mesh.HTTP {
		for _, rule := range rules.routes {
			rule.Clusters = []ir.WeightedCluster{{Name: cluster, Weight: 100}}
			host.Routes = append(host.Routes, &rule)
		}
	}
	last := defaultRoute(cluster, i.Service)
	if rules.leftOut || len(c.plan.rulesFor.under(&c.plan.reader, i.Service.Hostname)) > 0 && c.domain.virtualFor(i.Service.Hostname) == nil {
		last.WebSocket = ir.UpgradeRefused
	}
	host.Routes = append(host.Routes, last)
	return &ir.RouteTable{Name: host.Name, VirtualHosts: []*ir.VirtualHost{host}}
}

func (rd *reader) inboundVirtual(vs *virtualService) []ir.Route {
	var out []ir.Route
	for _, r := range rd.httpRoutesOf(vs) {
		for _, m := range r.matches {
			if vs.serves(m.gateways, meshGateway) && !m.closed {
				out = append(out, inboundRoute(vs.ref, m.match, r.route.Rewrite, r.route.WebSocket))
			}
		}
	}
	return out
}

// inboundRoute matches the request that the caller's proxy sends: after a rewrite
// it has the new path.
func inboundRoute(ref diag.Ref, match ir.Match, rewrite *ir.Rewrite, websocket ir.Upgrade) ir.Route {
	out := ir.Route{Match: match, WebSocket: websocket, Origins: []diag.Ref{ref}, Optional: true}
	if websocket != ir.UpgradeAllowed {
		out.Operation = ref.Name
	}
	if rewrite != nil && rewrite.Path != "" {
		out.Match.Path, out.Match.Prefix, out.Match.Regex = "", rewrite.Path, ""
	}
	return out
}
