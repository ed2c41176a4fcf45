package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// newCluster is an outbound cluster that asks the registry for its endpoints.
func (p *plan) newCluster(key mesh.ServiceKey, origin diag.Ref) *ir.Cluster {
	text := key.String()
	return &ir.Cluster{
		Name:           "out." + text,
		Type:           ir.Registry,
		EndpointKey:    text,
		ConnectTimeout: p.snap.Settings.ConnectTimeout,
		LoadBalancer:   ir.RoundRobin,
		Origins:        []diag.Ref{origin},
	}
}

// reach says how the cluster of a service finds its endpoints. Those of
// external services are listed in the cluster, as the registry does not answer
// for them.
func reach(out *ir.Cluster, svc *mesh.Service, port *mesh.Port, labels mesh.Labels) {
	switch {
	case svc.Resolution == mesh.Passthrough:
		out.Type = ir.OriginalDestination
	case svc.Resolution == mesh.DNS:
		out.Type = ir.StrictDNS
		out.Hosts = hosts(svc, port, labels)
	case svc.External:
		out.Type = ir.StaticHosts
		out.Hosts = hosts(svc, port, labels)
	}
}

// hosts are the endpoints of a cluster that lists them itself, each once, or a
// v1 Envoy would refuse all clusters. A DNS service without endpoints is the
// endpoint of its own name.
func hosts(svc *mesh.Service, port *mesh.Port, labels mesh.Labels) []ir.HostPort {
	if svc.Resolution == mesh.DNS && len(svc.Instances) == 0 && len(labels) == 0 {
		return []ir.HostPort{{Host: svc.Hostname, Port: port.Number}}
	}
	var out []ir.HostPort
	seen := map[ir.HostPort]bool{}
	for _, i := range svc.Instances {
		at := ir.HostPort{Host: i.Address, Port: i.EndpointPort}
		if i.Port == port && labels.SubsetOf(i.Labels) && !seen[at] {
			seen[at] = true
			out = append(out, at)
		}
	}
	return out
}

// need makes sure that the cluster of a target is there, under the policy that
// this view has for it.
func (c *compiler) need(t target) {
	name := t.cluster.Name
	if c.clusters[name] != nil {
		return
	}
	c.clusters[name] = t.cluster
	if pol := c.policyFor(t); pol != nil {
		c.clusters[name] = pol.applied(t.cluster)
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
