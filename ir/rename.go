package ir

import (
	"cmp"
	"slices"
)

// RenameClusters gives clusters other names, wherever they are named. What names
// none of them stays the same value, all else is a copy: parts of a Config are
// shared with others.
func (c *Config) RenameClusters(names map[string]string) {
	if len(names) == 0 {
		return
	}
	c.Clusters = each(c.Clusters, func(cluster *Cluster) *Cluster {
		name, ok := names[cluster.Name]
		if !ok {
			return cluster
		}
		out := *cluster
		out.Name = name
		return &out
	})
	slices.SortFunc(c.Clusters, func(a, b *Cluster) int { return cmp.Compare(a.Name, b.Name) })
	c.RouteTables = each(c.RouteTables, func(t *RouteTable) *RouteTable {
		hosts := each(t.VirtualHosts, func(h *VirtualHost) *VirtualHost { return h.renamed(names) })
		if slices.Equal(hosts, t.VirtualHosts) {
			return t
		}
		out := *t
		out.VirtualHosts = hosts
		return &out
	})
	c.Listeners = each(c.Listeners, func(l *Listener) *Listener { return l.renamed(names) })
}

func (h *VirtualHost) renamed(names map[string]string) *VirtualHost {
	routes := each(h.Routes, func(r *Route) *Route { return r.renamed(names) })
	if slices.Equal(routes, h.Routes) {
		return h
	}
	out := *h
	out.Routes = routes
	return &out
}

func (r *Route) renamed(names map[string]string) *Route {
	mirrors := func(m Mirror) bool { return names[m.Cluster] != "" }
	named := func(w WeightedCluster) bool { return names[w.Name] != "" }
	if !slices.ContainsFunc(r.Mirrors, mirrors) && !slices.ContainsFunc(r.Clusters, named) {
		return r
	}
	out := *r
	out.Mirrors = slices.Clone(r.Mirrors)
	for i, m := range out.Mirrors {
		out.Mirrors[i].Cluster = cmp.Or(names[m.Cluster], m.Cluster)
	}
	out.Clusters = slices.Clone(r.Clusters)
	for i, w := range out.Clusters {
		out.Clusters[i].Name = cmp.Or(names[w.Name], w.Name)
	}
	return &out
}

func (l *Listener) renamed(names map[string]string) *Listener {
	if l.TCP == nil || !slices.ContainsFunc(l.TCP.Routes, func(r TCPRoute) bool { return names[r.Cluster] != "" }) {
		return l
	}
	out, tcp := *l, *l.TCP
	tcp.Routes = slices.Clone(tcp.Routes)
	for i, r := range tcp.Routes {
		tcp.Routes[i].Cluster = cmp.Or(names[r.Cluster], r.Cluster)
	}
	out.TCP = &tcp
	return &out
}
