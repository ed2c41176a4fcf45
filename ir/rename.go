package ir

import (
	"cmp"
	"slices"
)

// Renamed returns the virtual host with its clusters renamed. It returns h itself
// if no cluster is renamed.
func (h *VirtualHost) Renamed(names map[string]string) *VirtualHost {
	routes := each(h.Routes, func(r *Route) *Route { return r.renamed(names) })
	if sameSlice(routes, h.Routes) {
		return h
	}
	out := *h
	out.Routes = routes
	return &out
}

func (r *Route) renamed(names map[string]string) *Route {
	mirrors := func(m Mirror) bool { return names[m.Cluster] != "" }
	if !slices.ContainsFunc(r.Mirrors, mirrors) && !namesAny(r.Clusters, names) {
		return r
	}
	out := *r
	out.Mirrors = slices.Clone(r.Mirrors)
	for i, m := range out.Mirrors {
		out.Mirrors[i].Cluster = cmp.Or(names[m.Cluster], m.Cluster)
	}
	out.Clusters = renamedClusters(r.Clusters, names)
	return &out
}

// Renamed returns the listener with its clusters renamed. It returns l itself if no
// cluster is renamed.
func (l *Listener) Renamed(names map[string]string) *Listener {
	tcp := l.TCP.renamed(names)
	chains := each(l.Chains, func(c *FilterChain) *FilterChain { return c.renamed(names) })
	if tcp == l.TCP && sameSlice(chains, l.Chains) {
		return l
	}
	out := *l
	out.TCP, out.Chains = tcp, chains
	return &out
}

func (c *FilterChain) renamed(names map[string]string) *FilterChain {
	tcp := c.TCP.renamed(names)
	if tcp == c.TCP {
		return c
	}
	out := *c
	out.TCP = tcp
	return &out
}

func (t *TCPListener) renamed(names map[string]string) *TCPListener {
	if t == nil || !slices.ContainsFunc(t.Routes, func(r TCPRoute) bool { return namesAny(r.Clusters, names) }) {
		return t
	}
	out := *t
	out.Routes = slices.Clone(t.Routes)
	for i, r := range t.Routes {
		out.Routes[i].Clusters = renamedClusters(r.Clusters, names)
	}
	return &out
}

func namesAny(clusters []WeightedCluster, names map[string]string) bool {
	return slices.ContainsFunc(clusters, func(w WeightedCluster) bool { return names[w.Name] != "" })
}

func renamedClusters(clusters []WeightedCluster, names map[string]string) []WeightedCluster {
	out := slices.Clone(clusters)
	for i, w := range out {
		out[i].Name = cmp.Or(names[w.Name], w.Name)
	}
	return out
}
