package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// need makes sure that the cluster of a target is there.
func (c *compiler) need(t target) {
	if c.clusters[t.name] != nil {
		return
	}
	out := &ir.Cluster{
		Name:           t.name,
		Type:           ir.Registry,
		EndpointKey:    t.key.String(),
		ConnectTimeout: c.snap.Settings.ConnectTimeout,
		LoadBalancer:   ir.RoundRobin,
		Origins:        []diag.Ref{t.origin},
	}
	if t.service != nil && t.port != nil {
		out.Origins[0] = t.service.Origin.Ref()
		out.HTTP2 = isHTTP2(t.port)
		reach(out, t)
	}
	if pol := c.policyFor(t); pol != nil {
		pol.apply(out)
	}
	c.clusters[t.name] = out
}

// reach says how the cluster of a known service finds its endpoints. Those of
// external services are listed in the cluster, as the registry does not answer
// for them.
func reach(out *ir.Cluster, t target) {
	switch {
	case t.service.Resolution == mesh.Passthrough:
		out.Type = ir.OriginalDestination
	case t.service.Resolution == mesh.DNS:
		out.Type = ir.StrictDNS
		out.Hosts = t.hosts()
	case t.service.External:
		out.Type = ir.StaticHosts
		out.Hosts = t.hosts()
	}
}

func isHTTP2(p *mesh.Port) bool { return p.Protocol == mesh.HTTP2 || p.Protocol == mesh.GRPC }

// needLocal makes sure that the cluster of a local port is there: the workload
// beside the proxy. No policy applies to it.
func (c *compiler) needLocal(i *mesh.Instance) string {
	name := fmt.Sprintf("in.%d", i.EndpointPort)
	if c.clusters[name] == nil {
		c.clusters[name] = &ir.Cluster{
			Name:           name,
			Type:           ir.StaticHosts,
			Hosts:          []ir.HostPort{{Host: "127.0.0.1", Port: i.EndpointPort}},
			ConnectTimeout: c.snap.Settings.ConnectTimeout,
			LoadBalancer:   ir.RoundRobin,
			HTTP2:          isHTTP2(i.Port),
			Origins:        []diag.Ref{i.Service.Origin.Ref()},
		}
	}
	return name
}
