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
// For a route table these are the objects of its new virtual hosts: those that an older
// view (nil for none) lacks, because the proxy acked the others there. If there are no new
// virtual hosts, OriginsOf returns the objects of all of them.
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

// ObjectsLeadingTo returns the objects whose routes lead to a cluster, for a proxy at an
// address. cluster is the name of its resource.
func (v *View) ObjectsLeadingTo(cluster, ip string) (refs []diag.Ref) {
	leads := func(name string) bool { return envoy.ClusterName(name) == cluster }
	table := func(t *ir.RouteTable) { refs = append(refs, routesLeading(t, leads)...) }
	for _, t := range v.Config.RouteTables {
		table(t)
	}
	for _, l := range v.Config.ListenersAt(ip) {
		l.EachTCPRoute(func(r ir.TCPRoute) {
			if slices.ContainsFunc(r.Clusters, func(c ir.WeightedCluster) bool { return leads(c.Name) }) {
				refs = append(refs, r.Origins...)
			}
		})
		l.EachHTTP(func(h *ir.HTTPListener) {
			if h.Inline != nil {
				table(h.Inline)
			}
		})
	}
	return refs
}

func routesLeading(t *ir.RouteTable, leads func(cluster string) bool) (refs []diag.Ref) {
	for _, h := range t.VirtualHosts {
		for _, r := range h.Routes {
			does := false
			r.EachCluster(func(name string) { does = does || leads(name) })
			if does {
				refs = append(refs, r.Origins...)
			}
		}
	}
	return refs
}

// ObjectsBehind returns the objects of a listener's route tables, for a proxy at an
// address. It skips the tables for which only returns false.
func (v *View) ObjectsBehind(listener, ip string, only func(table string) bool) (refs []diag.Ref) {
	for _, l := range v.Config.ListenersAt(ip) {
		if envoy.ListenerName(l) != listener {
			continue
		}
		l.EachHTTP(func(h *ir.HTTPListener) {
			if h.Inline != nil || !only(h.Table) {
				return
			}
			for _, host := range HostsOf(v, h.Table) {
				host.EachOrigin(func(ref diag.Ref) { refs = append(refs, ref) })
			}
		})
	}
	return refs
}
