package compiled

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// OriginsOf returns the objects behind a resource of the view, for a proxy at an address.
// Of a route table it returns the objects of the virtual hosts that an older view, nil for
// none, does not have, because the proxy acked the others there. If there are no such
// virtual hosts, it returns the objects of all.
func (v *View) OriginsOf(typeURL, name, ip string, older *View) []diag.Ref {
	var refs []diag.Ref
	add := func(ref diag.Ref) {
		if ref != (diag.Ref{}) && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	switch typeURL {
	case xds.ClusterType:
		for _, c := range v.Config.Clusters {
			if envoy.ClusterName(c.Name) == name {
				for _, ref := range c.Origins {
					add(ref)
				}
			}
		}
	case xds.EndpointType:
		_, key := envoy.ParseEndpointsName(name)
		if svc := v.Encoder.Current.Load().Mesh.ServiceOfKey(mesh.ParseServiceKey(key).Hostname); svc != nil {
			add(svc.Origin.Ref())
		}
	case xds.ListenerType:
		for _, l := range v.Config.ListenersAt(ip) {
			if envoy.ListenerName(l) == name {
				l.EachOrigin(add)
			}
		}
	case xds.SecretType:
		for _, s := range v.Config.Secrets {
			if s.Name == name {
				for _, ref := range s.Origins {
					add(ref)
				}
			}
		}
	case xds.RouteType:
		acked := map[*ir.VirtualHost]bool{}
		if older != nil {
			for _, h := range HostsOf(older, name) {
				acked[h] = true
			}
		}
		hosts := HostsOf(v, name)
		if fresh := slices.DeleteFunc(slices.Clone(hosts), func(h *ir.VirtualHost) bool { return acked[h] }); len(fresh) > 0 {
			hosts = fresh
		}
		for _, h := range hosts {
			h.EachOrigin(add)
		}
	}
	return refs
}
