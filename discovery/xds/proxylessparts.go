package xds

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// ProxylessHost is a virtual host of a port in the form for clients of gRPC.
type ProxylessHost struct {
	Routes *Resource
	// Listeners has one listener for each name of the host.
	Listeners []*Resource
	Clusters  []string // names in the IR
}

// ProxylessCluster is a cluster in the form for clients of gRPC.
type ProxylessCluster struct {
	Cluster   *Resource
	Endpoints *Resource // endpoints that are not in the registry; nil for none
}

func (p *V3Parts) ProxylessHost(h *ir.VirtualHost, port string) *ProxylessHost {
	return p.proxylessHosts.Of(h, port, func() *ProxylessHost {
		message := func(h *ir.VirtualHost) encoder {
			return func() (v3.Message, diag.List) { return v3.ProxylessRoutes(h) }
		}
		var origin diag.Ref
		if len(h.Routes) > 0 {
			origin = first(h.Routes[0].Origins)
		}
		out := &ProxylessHost{Routes: p.resource(RouteType, h.Name, origin, message(h), message(h.Closed()))}
		for _, d := range h.Domains {
			if !strings.HasSuffix(d, ":"+port) || strings.Contains(d, "*") {
				continue
			}
			out.Listeners = append(out.Listeners, p.resource(ListenerType, d, origin, func() (v3.Message, diag.List) {
				return v3.ProxylessListener(d, h.Name), nil
			}, nil))
		}
		for _, r := range h.Routes {
			for _, c := range r.Clusters {
				if !slices.Contains(out.Clusters, c.Name) {
					out.Clusters = append(out.Clusters, c.Name)
				}
			}
		}
		return out
	})
}

func (p *V3Parts) ProxylessCluster(c *ir.Cluster) *ProxylessCluster {
	return p.proxylessClusters.Of(c, struct{}{}, func() *ProxylessCluster {
		message := func(c *ir.Cluster) encoder {
			return func() (v3.Message, diag.List) { return v3.ProxylessCluster(c) }
		}
		out := &ProxylessCluster{Cluster: p.resource(ClusterType, envoy.ClusterName(c.Name), first(c.Origins), message(c), message(c.Closed()))}
		if name, members := v3.ProxylessMembers(c); len(members) > 0 {
			// Without them it has none, which is what a name that nobody has means.
			out.Endpoints, _ = p.EncodeEndpoints(name, members, v3.ProxylessEndpoints)
		}
		return out
	})
}
