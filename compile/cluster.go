package compile

import (
	"cmp"
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
func reach(out *ir.Cluster, host string, svc *mesh.Service, port *mesh.Port, labels mesh.Labels) {
	switch {
	case svc.Resolution == mesh.Passthrough:
		out.Type = ir.OriginalDestination
	case svc.Resolution == mesh.DNS:
		out.Type = ir.StrictDNS
		out.Hosts = hosts(host, svc, port, labels)
	case svc.External:
		out.Type = ir.StaticHosts
		out.Hosts = hosts(host, svc, port, labels)
	}
}

// hosts are the endpoints of a cluster that lists them itself, each once, or a
// v1 Envoy would refuse all clusters. A host of a DNS service without
// endpoints is an endpoint by its name, of whatever version.
func hosts(host string, svc *mesh.Service, port *mesh.Port, labels mesh.Labels) []ir.Endpoint {
	if isItsOwnEndpoint(svc) && !meansNoSubset(labels) {
		return []ir.Endpoint{{Host: host, Port: port.TargetPort}}
	}
	var out []ir.Endpoint
	seen := map[ir.HostPort]bool{}
	for _, i := range svc.Select(port.Name, labels) {
		e := ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight}
		if !seen[e.Address()] {
			seen[e.Address()] = true
			out = append(out, e)
		}
	}
	return out
}

func isItsOwnEndpoint(svc *mesh.Service) bool {
	return svc.Resolution == mesh.DNS && len(svc.Instances) == 0
}

// addCluster makes sure that the cluster of a target is there, under the policy that
// this view has for it.
func (c *compiler) addCluster(t target) {
	name := t.cluster.Name
	if c.clusters[name] != nil {
		return
	}
	c.clusters[name] = c.underPolicy(t)
}

func (c *compiler) needAll(targets []target) {
	for _, t := range targets {
		c.addCluster(t)
	}
}

// underPolicy is the cluster as a DestinationPolicy wants it, with the TLS of a
// DestinationRule; where there is no such policy, as the rule wants it.
func (c *compiler) underPolicy(t target) *ir.Cluster {
	svc := cmp.Or(c.domain.service(t.host), c.snap.Service(t.host))
	if svc != nil && svc.NamesExternal() && c.plan.pilot().ExternalNamePoliciesIgnored {
		return t.cluster
	}
	if pol := c.policyFor(t); pol != nil {
		return c.domain.ruleFor(t.host).secured(pol.applied(t.cluster), t, c.plan.pilot())
	}
	if rule := c.domain.ruleFor(t.host); rule != nil {
		return rule.applied(t, c.plan.pilot())
	}
	return t.cluster
}

func isHTTP2(p *mesh.Port) bool { return p.Protocol == mesh.HTTP2 || p.Protocol == mesh.GRPC }

// needLocal makes sure that the cluster of a local port is there: the workload
// beside the proxy. No policy applies to it.
func (c *compiler) needLocal(port int, http2 bool, origins []diag.Ref) string {
	name := fmt.Sprintf("in.%d", port)
	if c.clusters[name] == nil {
		c.clusters[name] = &ir.Cluster{
			Name:           name,
			Type:           ir.StaticHosts,
			Hosts:          []ir.Endpoint{{Host: "127.0.0.1", Port: port}},
			ConnectTimeout: c.snap.Settings.ConnectTimeout,
			LoadBalancer:   ir.RoundRobin,
			HTTP2:          http2,
			Origins:        origins,
		}
	}
	return name
}
