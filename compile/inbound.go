package compile

import (
	"fmt"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// inboundListeners takes the calls to the workload beside the proxy, one
// listener for each endpoint port. Nothing in them may tell one instance from
// another with the same key in mesh.View: the address is left open, and the
// origin is the service.
func (c *compiler) inboundListeners() {
	for _, i := range c.view.Instances {
		if i.Port.Protocol == mesh.UDP {
			continue
		}
		if first := c.inbound[i.EndpointPort]; first != nil {
			c.checkInbound(i, first)
			continue
		}
		c.inbound[i.EndpointPort] = i
		cluster := c.needLocal(i)
		l := &ir.Listener{
			Port: i.EndpointPort, Direction: ir.Inbound,
			Origins: []diag.Ref{i.Service.Origin.Ref()},
		}
		if i.Port.Protocol.IsHTTP() {
			l.HTTP = c.http("")
			l.HTTP.Inline = c.inboundTable(i, cluster)
		} else {
			l.TCP = &ir.TCPListener{
				Mongo:  i.Port.Protocol == mesh.Mongo,
				Routes: []ir.TCPRoute{{Cluster: cluster}},
			}
		}
		c.listen(l)
	}
}

// checkInbound reports a port that two services describe differently; the
// first one's description holds.
func (c *compiler) checkInbound(i, first *mesh.Instance) {
	if i.Port.Protocol == first.Port.Protocol {
		return
	}
	c.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Object: i.Service.Origin.Ref(),
		Message: fmt.Sprintf("an instance's port %d is %s for %s and %s for %s; calls to it are taken as %s",
			i.EndpointPort, i.Port.Protocol, i.Service.Hostname,
			first.Port.Protocol, first.Service.Hostname, first.Port.Protocol),
	})
}

// inboundTable sends everything to the workload. The rules of its service are
// repeated for the sake of upgrades and traces, whoever calls; on HTTP/2 ports
// they are not, as there is no upgrade to allow.
func (c *compiler) inboundTable(i *mesh.Instance, cluster string) *ir.RouteTable {
	host := &ir.VirtualHost{Name: "inbound|" + strconv.Itoa(i.EndpointPort), Domains: []string{"*"}}
	if i.Port.Protocol == mesh.HTTP {
		for _, rule := range c.plan.rules[i.Service.Hostname] {
			host.Routes = append(host.Routes, inboundRoute(rule, cluster))
		}
	}
	host.Routes = append(host.Routes, defaultRoute(cluster, i.Service))
	return &ir.RouteTable{Name: host.Name, VirtualHosts: []*ir.VirtualHost{host}}
}

// inboundRoute matches what the caller's proxy sends: after a rewrite, that is
// the new path.
func inboundRoute(rule *routeRule, cluster string) *ir.Route {
	out := &ir.Route{
		Match:     rule.match,
		Clusters:  []ir.WeightedCluster{{Name: cluster, Weight: 100}},
		WebSocket: rule.spec.WebsocketUpgrade,
		Origins:   []diag.Ref{rule.ref},
	}
	if !out.WebSocket {
		out.Operation = rule.ref.Name
	}
	if r := rule.spec.Rewrite; r != nil && r.URI != "" {
		out.Match.Path, out.Match.Prefix, out.Match.Regex = "", r.URI, ""
	}
	return out
}
