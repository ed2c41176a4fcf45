package discovery

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// proxyless is a view as programs have it that speak gRPC without a proxy: what they
// may call by HTTP, each virtual host as a table of its own
// (docs/decisions/022-proxyless-grpc.md).
type proxyless struct {
	targets []*target
	reached []*reached // by them
	keys    []string   // of endpoints that the registry has
}

// target is a virtual host of a port.
type target struct {
	routes *resource
	// listeners lead to it, one for each name that it is called by.
	listeners []*resource
	clusters  []string // names in the IR
}

// reached is a cluster.
type reached struct {
	cluster   *resource
	endpoints *resource // that are not the registry's; nil for none
}

func encodeProxyless(v *view) *v3Answers {
	p := &proxyless{}
	a := &v3Answers{view: v, streamed: true, proxyless: p, merged: newMemo[*set](0), listeners: newMemo[*listenerSet](1)}
	names := map[string]bool{}
	for _, t := range v.config.RouteTables {
		if t.Name == compile.ProxyTable {
			continue
		}
		for _, h := range t.VirtualHosts {
			if slices.Contains(h.Domains, "*") {
				continue // What nobody declared has no name.
			}
			of := a.parts().target(h, t.Name)
			p.targets = append(p.targets, of)
			for _, name := range of.clusters {
				names[name] = true
			}
		}
	}
	var used []*ir.Cluster
	for _, c := range v.config.Clusters {
		if names[c.Name] {
			used = append(used, c)
			p.reached = append(p.reached, a.parts().reach(c))
		}
	}
	p.keys = endpointKeys(used)
	clusters, routes := make([]*resource, len(p.reached)), make([]*resource, len(p.targets))
	for i, r := range p.reached {
		clusters[i] = r.cluster
	}
	for i, t := range p.targets {
		routes[i] = t.routes
	}
	a.clusters, a.routes = newSet(ClusterType, clusters), newSet(RouteType, routes)
	listeners := p.listeners()
	a.listeners.put("", newListenerSet(listeners))
	for _, s := range []*set{a.clusters, a.routes, listeners} {
		s.problems.AddTo(&a.problems, diag.LostInGRPC)
	}
	return a
}

func (p *proxyless) listeners() *set {
	var all []*resource
	for _, t := range p.targets {
		all = append(all, t.listeners...)
	}
	return newSet(ListenerType, all)
}

func (p *proxyless) endpoints(g *generation) *set {
	s := &set{typeURL: EndpointType, proxyless: true}
	for _, key := range p.keys {
		if r := endpointsNamed(g, key, nil, true); r != nil {
			s.sorted = append(s.sorted, r)
		}
	}
	for _, r := range p.reached {
		if r.endpoints != nil {
			s.sorted = append(s.sorted, r.endpoints)
		}
	}
	s.sorted = unique(s.sorted)
	return s
}

func (p *v3Parts) target(h *ir.VirtualHost, port string) *target {
	return p.targets.of(h, port, func() *target {
		spelled := func(h *ir.VirtualHost) spelling {
			return func() (v3.Message, diag.List) { return v3.ProxylessRoutes(h) }
		}
		var origin diag.Ref
		if len(h.Routes) > 0 {
			origin = first(h.Routes[0].Origins)
		}
		out := &target{routes: p.resource(RouteType, h.Name, origin, spelled(h), spelled(h.Closed()))}
		for _, d := range h.Domains {
			if !strings.HasSuffix(d, ":"+port) || strings.Contains(d, "*") {
				continue
			}
			out.listeners = append(out.listeners, p.resource(ListenerType, d, origin, func() (v3.Message, diag.List) {
				return v3.ProxylessListener(d, h.Name), nil
			}, nil))
		}
		for _, r := range h.Routes {
			for _, c := range r.Clusters {
				if !slices.Contains(out.clusters, c.Name) {
					out.clusters = append(out.clusters, c.Name)
				}
			}
		}
		return out
	})
}

func (p *v3Parts) reach(c *ir.Cluster) *reached {
	return p.reached.of(c, struct{}{}, func() *reached {
		spelled := func(c *ir.Cluster) spelling {
			return func() (v3.Message, diag.List) { return v3.ProxylessCluster(c) }
		}
		out := &reached{cluster: p.resource(ClusterType, envoy.ClusterName(c.Name), first(c.Origins), spelled(c), spelled(c.Closed()))}
		if name, members := v3.ProxylessMembers(c); len(members) > 0 {
			// Without them it has none, which is what a name that nobody has means.
			out.endpoints, _ = p.endpoints(name, members, v3.ProxylessEndpoints)
		}
		return out
	})
}
