package ir

import (
	"cmp"
	"slices"
)

// Renamed is the virtual host with other names for clusters; itself when it
// names none of them.
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

// Renamed is the listener with other names for clusters; itself when it names
// none of them.
func (l *Listener) Renamed(names map[string]string) *Listener {
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
