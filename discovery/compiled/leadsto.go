package compiled

import (
	"weak"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// Leads has the clusters that changed listeners and route tables lead to: by the name of the
// table, and those of all listeners together under the type of listeners. Clusters are the
// names of their resources.
type Leads map[string]map[string]struct{}

// leadsSince is the Leads of a view since another one. It does not keep the other view in
// memory.
type leadsSince struct {
	from  weak.Pointer[View]
	leads Leads
}

// LeadsSince returns the clusters that those parts of listeners and route tables lead to
// which an older view lacks. All proxies that come from the same view share the result.
func (v *View) LeadsSince(older *View) Leads {
	from := weak.Make(older)
	if known := v.lastLeads.Load(); known != nil && known.from == from {
		return known.leads
	}
	out := Leads{}
	for _, t := range v.Config.RouteTables {
		out.addTable(t.Name, t, TableNamed(older, t.Name))
	}
	known := map[*ir.Listener]bool{}
	for _, l := range older.Config.Listeners {
		known[l] = true
	}
	for _, l := range v.Config.Listeners {
		if !known[l] {
			out.addListener(l, v, older)
		}
	}
	v.lastLeads.Store(&leadsSince{from, out})
	return out
}

// TableLeads returns the clusters that a route table of the view leads to.
func (v *View) TableLeads(name string) map[string]struct{} {
	out := Leads{}
	out.addTable(name, TableNamed(v, name), nil)
	return out[name]
}

func (l Leads) add(name, cluster string) {
	if l[name] == nil {
		l[name] = map[string]struct{}{}
	}
	l[name][envoy.ClusterName(cluster)] = struct{}{}
}

// addTable adds the virtual hosts of a table that an older one lacks. Either may be nil.
func (l Leads) addTable(name string, t, older *ir.RouteTable) {
	if t == nil || t == older {
		return
	}
	known := map[*ir.VirtualHost]bool{}
	if older != nil {
		for _, h := range older.VirtualHosts {
			known[h] = true
		}
	}
	for _, h := range t.VirtualHosts {
		if known[h] {
			continue
		}
		for _, r := range h.Routes {
			r.EachCluster(func(cluster string) { l.add(name, cluster) })
		}
	}
}

// addListener adds a listener. Until an Envoy has the route table of a new listener, it does
// not serve the listener, so the listener leads where the table does.
func (l Leads) addListener(listener *ir.Listener, v, older *View) {
	listener.EachTCPRoute(func(r ir.TCPRoute) {
		for _, c := range r.Clusters {
			l.add(xds.ListenerType, c.Name)
		}
	})
	listener.EachHTTP(func(h *ir.HTTPListener) {
		if h.Inline != nil {
			l.addTable(xds.ListenerType, h.Inline, nil)
			return
		}
		l.addTable(xds.ListenerType, TableNamed(v, h.Table), TableNamed(older, h.Table))
	})
}
