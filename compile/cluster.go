package compile

import (
	"cmp"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// clusterKey is a target, its DestinationPolicy, and the domain and selection that
// decide which DestinationRules its callers follow.
type clusterKey struct {
	target
	domain    string
	selection selection
	policy    *policy
	// network of the callers, if the endpoints depend on it.
	network string
}

// clusterPart is a cluster with its problems.
type clusterPart struct {
	cluster  *ir.Cluster
	stream   ir.Stream // settings of TCP connections to it
	problems diag.List
	// decidesTLS is set if a rule says how connections are secured.
	decidesTLS bool
}

// clusterOf returns the cluster of a target with the rules that apply to it.
func (rd *reader) clusterOf(key clusterKey) clusterPart {
	d := rd.forSelected(key.domain, key.selection)
	if key.nobody || key.service != nil && key.service.Withheld || d.tooManyVersions(key.target) {
		return clusterPart{cluster: (&ir.Cluster{Name: key.name, Origins: []diag.Ref{key.origin}}).Closed()}
	}
	out := clusterPart{cluster: rd.plainCluster(key.target, key.network)}
	d.underPolicy(&out, key.target, key.policy)
	rd.addMutualTLS(&out, key.target)
	unlabelled(out.cluster)
	cluster, problems := ir.CloseCluster(out.cluster)
	out.cluster, out.problems = secured(cluster), append(problems, unseenNames(cluster, key.target)...)
	return out
}

// underPolicy applies a DestinationPolicy and the TLS settings of a DestinationRule
// to a cluster. Without a DestinationPolicy it applies the whole DestinationRule.
func (v *viewpoint) underPolicy(out *clusterPart, t target, pol *policy) {
	if svc := cmp.Or(v.service(t.host), v.registered(t.host)); svc != nil && svc.NamesExternal() && v.pilot().ExternalNamePoliciesIgnored {
		return
	}
	rule := v.ruleFor(t.host)
	if pol != nil {
		out.cluster = pol.applied(out.cluster)
	}
	w := v.policyWriter(out, t, rule)
	switch {
	case rule == nil && pol == nil:
		w.localities(nil)
		return
	case rule == nil:
		return
	case pol != nil:
		w.secure(rule.policy(t, v.pilot()))
		return
	}
	out.cluster.Origins = append(out.cluster.Origins, rule.refs()...)
	w.apply(rule.policy(t, v.pilot()))
}

// plainCluster returns an outbound cluster without any policy.
func (rd *reader) plainCluster(t target, network string) *ir.Cluster {
	out := &ir.Cluster{
		Name:           t.name,
		Type:           ir.Registry,
		EndpointKey:    t.key,
		ConnectTimeout: rd.settings.ConnectTimeout,
		Origins:        []diag.Ref{t.origin},
	}
	if t.service == nil {
		return out
	}
	out.HTTP2 = isHTTP2(t.port)
	rd.reach(out, t, network)
	out.HealthCheck = rd.healthCheck(out, t)
	if t.service.Egress && t.port.Protocol == mesh.HTTPS {
		out.TLS = &ir.ClientTLS{}
	}
	return out
}

// reach sets how the cluster of a service finds its endpoints. The cluster itself
// lists the endpoints of external services and sockets, as the registry does not
// serve them.
func (rd *reader) reach(out *ir.Cluster, t target, network string) {
	switch {
	case t.service.Resolution == mesh.Passthrough:
		out.Type = ir.OriginalDestination
		if t.port.TargetPort != t.port.Number {
			out.DestinationPort = t.port.TargetPort
		}
	case t.service.Resolution == mesh.DNS:
		out.Type = ir.StrictDNS
		if out.Hosts = rd.hostsOf(t, network); t.service.OneAddress && len(out.Hosts) == 1 {
			out.Type = ir.LogicalDNS
		}
	case t.service.External, t.service.Sockets:
		out.Type = ir.StaticHosts
		out.Hosts = rd.hostsOf(t, network)
	case network != "":
		key := mesh.ParseServiceKey(t.key)
		key.Network = network
		out.EndpointKey = key.String()
	}
}

// hostsOf returns the endpoints of a cluster that lists them itself, each once, as
// the IR promises. A DNS service without endpoints has its host name as the only
// endpoint, for any version.
func (rd *reader) hostsOf(t target, network string) []ir.Endpoint {
	labels := t.version.labels()
	if t.service.IsItsOwnEndpoint() {
		return []ir.Endpoint{{Host: t.host, Port: t.port.TargetPort}}
	}
	var out []ir.Endpoint
	seen := map[ir.HostPort]bool{}
	for _, i := range rd.settings.Reached(rd.instancesOf(t), network, len(labels) > 0) {
		e := endpointOf(i)
		if !seen[e.Address()] {
			seen[e.Address()] = true
			out = append(out, e)
		}
	}
	return out
}

// instancesOf returns the instances of the target.
func (rd *reader) instancesOf(t target) []*mesh.Instance {
	labels := t.version.labels()
	var out []*mesh.Instance
	for _, i := range rd.byPort.Get(rd.r, t.service).at[t.port.Name] {
		if labels.SubsetOf(i.Labels) {
			out = append(out, i)
		}
	}
	return out
}

// byPort has the instances of a service by port name, so that each cluster looks
// only at those of its own port.
type byPort struct{ at map[string][]*mesh.Instance }

func (rd *reader) instancesByPort(svc *mesh.Service) *byPort {
	out := &byPort{map[string][]*mesh.Instance{}}
	for _, i := range rd.instances(svc) {
		out.at[i.Port.Name] = append(out.at[i.Port.Name], i)
	}
	return out
}

func isHTTP2(p *mesh.Port) bool { return p.Protocol == mesh.HTTP2 || p.Protocol == mesh.GRPC }

// addCluster adds the cluster of a target, as this caller sees it, unless it is
// already there.
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

// forRules returns the domain and selection that decide which DestinationRule
// callers have for a host; both are empty for callers that no exception names.
func (v *viewpoint) forRules(host string) (string, selection) {
	if v.ruleExceptions(host).has(v.namespace) {
		return v.domain, v.selection
	}
	return "", ""
}

// ruleExceptions returns the callers that may have other DestinationRules for a
// host than the rest, or see another service under its name.
func (rd *reader) ruleExceptions(host string) exceptions {
	if rd.pilot().ShortNamesByCaller || rd.hasSeveral(host) {
		return everyone
	}
	return rd.settingsExcept.Get(rd.r, host)
}

// policyFor returns the first policy for exactly this version that the caller follows,
// or nil.
func (c *writer) policyFor(t target) *policy {
	of := c.plan.policiesFor.under(&c.plan.reader, labelled{t.host, t.version.labels().String()})
	if len(of) == 0 {
		return nil
	}
	owner := c.domain.ownerOf(t.host)
	if t.service != nil {
		owner = t.service.Namespace
	}
	for _, pol := range of {
		if c.fits(c.plan.followers(pol.source, pol.ref.Namespace, owner)) {
			return pol
		}
	}
	return nil
}

// needLocal adds the cluster of a local port, which leads to the workload beside
// the proxy, and returns its name. No policy applies to it.
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
