package compiled

import (
	"slices"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// proxylessHosts encodes a view for programs that speak gRPC without a proxy. They get only
// what they can call by HTTP, and each virtual host is a table of its own
// (docs/decisions/022-proxyless-grpc.md).
type proxylessHosts struct {
	targets []*xds.ProxylessHost
	reached []*xds.ProxylessCluster // by them
	keys    []string                // of endpoints that the registry has
}

func encodeProxyless(v *View) *V3Answers {
	p := &proxylessHosts{}
	a := &V3Answers{View: v, streamed: true, proxyless: p, merged: cached.NewMemo[*xds.Set](0), listeners: cached.NewMemo[*listenerSet](1)}
	names := map[string]bool{}
	for _, t := range v.Config.RouteTables {
		if t.Name == compile.ProxyTable {
			continue
		}
		for _, h := range t.VirtualHosts {
			if slices.Contains(h.Domains, "*") {
				continue // Undeclared hosts have no names.
			}
			of := a.parts().ProxylessHost(h, t.Name)
			p.targets = append(p.targets, of)
			for _, name := range of.Clusters {
				names[name] = true
			}
		}
	}
	var used []*ir.Cluster
	for _, c := range v.Config.Clusters {
		if names[c.Name] {
			used = append(used, c)
			p.reached = append(p.reached, a.parts().ProxylessCluster(c))
		}
	}
	p.keys = EndpointKeys(used)
	clusters, routes := make([]*xds.Resource, len(p.reached)), make([]*xds.Resource, len(p.targets))
	for i, r := range p.reached {
		clusters[i] = r.Cluster
	}
	for i, t := range p.targets {
		routes[i] = t.Routes
	}
	a.Clusters, a.Routes = xds.NewSet(xds.ClusterType, clusters), xds.NewSet(xds.RouteType, routes)
	listeners := p.listeners()
	a.listeners.Put("", newListenerSet(listeners))
	for _, s := range []*xds.Set{a.Clusters, a.Routes, listeners} {
		s.Problems.AddTo(&a.problems, diag.LostInGRPC)
	}
	return a
}

func (p *proxylessHosts) listeners() *xds.Set {
	var all []*xds.Resource
	for _, t := range p.targets {
		all = append(all, t.Listeners...)
	}
	return xds.NewSet(xds.ListenerType, all)
}

func (p *proxylessHosts) endpoints(g *Generation) *xds.Set {
	var all []*xds.Resource
	for _, key := range p.keys {
		if r := EndpointsNamed(g, key, nil, true); r != nil {
			all = append(all, r)
		}
	}
	for _, r := range p.reached {
		if r.Endpoints != nil {
			all = append(all, r.Endpoints)
		}
	}
	return xds.NewEndpointSet(xds.Unique(all), true)
}
