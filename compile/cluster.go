package compile

import (
	"cmp"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// clusterKey is a target as callers of a domain see it that the same
// DestinationRules select, under the DestinationPolicy that holds for them.
type clusterKey struct {
	target
	domain    string
	selection selection
	policy    *policy
	// network of the callers, where it matters to whom it leads.
	network string
}

// clusterPart is a cluster, with what is wrong with it.
type clusterPart struct {
	cluster  *ir.Cluster
	stream   ir.Stream // of connections that are passed on to it as they are
	problems diag.List
}

// clusterOf is the cluster of a target under the rules for it.
func (p *plan) clusterOf(key clusterKey) clusterPart {
	d := p.forSelected(key.domain, key.selection)
	if key.nobody || key.service != nil && key.service.Withheld || d.tooManyVersions(key.target) {
		return clusterPart{cluster: (&ir.Cluster{Name: key.name, Origins: []diag.Ref{key.origin}}).Closed()}
	}
	out := clusterPart{cluster: p.plainCluster(key.target, key.network)}
	d.underPolicy(&out, key.target, key.policy)
	unlabelled(out.cluster)
	cluster, problems := ir.CloseCluster(out.cluster)
	out.cluster, out.problems = secured(cluster), append(problems, unseenNames(cluster, key.target)...)
	return out
}

// underPolicy makes of a cluster what a DestinationPolicy wants, with the TLS of
// a DestinationRule; where there is no such policy, what the rule wants.
func (d *domainPlan) underPolicy(out *clusterPart, t target, pol *policy) {
	if svc := cmp.Or(d.service(t.host), d.registered(t.host)); svc != nil && svc.NamesExternal() && d.pilot().ExternalNamePoliciesIgnored {
		return
	}
	rule := d.ruleFor(t.host)
	if pol != nil {
		out.cluster = pol.applied(out.cluster)
	}
	w := d.policyWriter(out, t, rule)
	switch {
	case rule == nil && pol == nil:
		w.localities(nil)
		return
	case rule == nil:
		return
	case pol != nil:
		w.secure(rule.policy(t, d.pilot()))
		return
	}
	out.cluster.Origins = append(out.cluster.Origins, rule.refs()...)
	w.apply(rule.policy(t, d.pilot()))
}

// plainCluster is an outbound cluster without any policy.
func (p *plan) plainCluster(t target, network string) *ir.Cluster {
	out := &ir.Cluster{
		Name:           t.name,
		Type:           ir.Registry,
		EndpointKey:    t.key,
		ConnectTimeout: p.settings.ConnectTimeout,
		Origins:        []diag.Ref{t.origin},
	}
	if t.service == nil {
		return out
	}
	out.HTTP2 = isHTTP2(t.port)
	p.reach(out, t, network)
	out.HealthCheck = p.healthCheck(out, t)
	if t.service.Egress && t.port.Protocol == mesh.HTTPS {
		out.TLS = &ir.ClientTLS{}
	}
	return out
}

// reach says how the cluster of a service finds its endpoints. Those of
// external services and sockets are listed in the cluster, as the registry does
// not answer for them.
func (p *plan) reach(out *ir.Cluster, t target, network string) {
	switch {
	case t.service.Resolution == mesh.Passthrough:
		out.Type = ir.OriginalDestination
		if t.port.TargetPort != t.port.Number {
			out.DestinationPort = t.port.TargetPort
		}
	case t.service.Resolution == mesh.DNS:
		out.Type = ir.StrictDNS
		if out.Hosts = p.hostsOf(t, network); t.service.OneAddress && len(out.Hosts) == 1 {
			out.Type = ir.LogicalDNS
		}
	case t.service.External, t.service.Sockets:
		out.Type = ir.StaticHosts
		out.Hosts = p.hostsOf(t, network)
	case network != "":
		key := mesh.ParseServiceKey(t.key)
		key.Network = network
		out.EndpointKey = key.String()
	}
}

// hostsOf are the endpoints of a cluster that lists them itself, each once, as the
// IR promises. A host of a DNS service without
// endpoints is an endpoint by its name, of whatever version.
func (p *plan) hostsOf(t target, network string) []ir.Endpoint {
	labels := t.version.labels()
	if t.service.IsItsOwnEndpoint() {
		return []ir.Endpoint{{Host: t.host, Port: t.port.TargetPort}}
	}
	var out []ir.Endpoint
	seen := map[ir.HostPort]bool{}
	for _, i := range p.settings.Reached(p.instancesOf(t), network, len(labels) > 0) {
		e := endpointOf(i)
		if !seen[e.Address()] {
			seen[e.Address()] = true
			out = append(out, e)
		}
	}
	return out
}

// instancesOf are those of the target.
func (p *plan) instancesOf(t target) []*mesh.Instance {
	labels := t.version.labels()
	var out []*mesh.Instance
	for _, i := range p.byPort.Get(p.r, t.service).at[t.port.Name] {
		if labels.SubsetOf(i.Labels) {
			out = append(out, i)
		}
	}
	return out
}

// byPort are the instances of a service by the names of ports, so that each cluster
// looks only at those at its own.
type byPort struct{ at map[string][]*mesh.Instance }

func (p *plan) instancesByPort(svc *mesh.Service) *byPort {
	out := &byPort{map[string][]*mesh.Instance{}}
	for _, i := range p.instances(svc) {
		out.at[i.Port.Name] = append(out.at[i.Port.Name], i)
	}
	return out
}

func isHTTP2(p *mesh.Port) bool { return p.Protocol == mesh.HTTP2 || p.Protocol == mesh.GRPC }

// addCluster makes sure that the cluster of a target is there, as this caller
// sees it.
func (c *writer) addCluster(t target) {
	if _, ok := c.added[t.name]; ok {
		return
	}
	key := clusterKey{target: t, policy: c.policyFor(t)}
	key.domain, key.selection = c.domain.forRules(t.host)
	if t.service != nil && t.service.Networks {
		key.network = c.scope.network
	}
	part := c.plan.clusters.Get(c.plan.r, key)
	c.put(part.cluster)
	c.added[t.name] = part
	c.byKey = c.byKey || part.cluster.Hash != nil
	if part.cluster.Name != t.name {
		if c.renamed == nil {
			c.renamed = map[string]string{}
		}
		c.renamed[t.name] = part.cluster.Name
	}
	c.plan.problems.Add(part.problems...)
}

func (c *writer) needAll(targets []target) {
	for _, t := range targets {
		c.addCluster(t)
	}
}

// forRules is by what callers have a DestinationRule for a host; "" where all
// have the same.
func (d *domainPlan) forRules(host string) (string, selection) {
	if d.rulesDiffer(host) {
		return d.domain, d.selection
	}
	return "", ""
}

// rulesDiffer reports whether callers may have different DestinationRules for a
// host, or know it as different services.
func (p *plan) rulesDiffer(host string) bool {
	return p.pilot().ShortNamesByCaller || len(p.registry.byHost.under(p, host)) > 1 || p.differs.Get(p.r, host)
}

// policyFor is the first policy for exactly this version whose source fits the
// caller; nil when there is none.
func (c *writer) policyFor(t target) *policy {
	of := c.plan.policiesFor.under(c.plan, labelled{t.host, t.version.labels().String()})
	for _, pol := range of {
		if c.fits(pol.source) {
			return pol
		}
	}
	return nil
}

// needLocal makes sure that the cluster of a local port is there: the workload
// beside the proxy. No policy applies to it.
func (c *writer) needLocal(port int, http2 bool, origins []diag.Ref) string {
	name := fmt.Sprintf("in.%d", port)
	if c.clusters[name] == nil {
		c.put(&ir.Cluster{
			Name:           name,
			Type:           ir.StaticHosts,
			Hosts:          []ir.Endpoint{{Host: "127.0.0.1", Port: port}},
			ConnectTimeout: c.plan.settings.ConnectTimeout,
			HTTP2:          http2,
			Origins:        origins,
		})
	}
	return name
}

func byName(a, b *ir.Cluster) int { return cmp.Compare(a.Name, b.Name) }
