package nack

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// routePart is a part of a route table that is blamed by itself: a virtual host, or the
// routes in it that come from the same objects.
type routePart struct {
	partKey
	host *ir.VirtualHost // as it should be
	// routes of the part; for a whole host all of its routes
	routes   []*ir.Route
	previous previous
	words    string // of the nack that it is to blame for, or why it is held back
	// suspected: it is held back because of a cluster that may be innocent.
	suspected bool
}

// partKey identifies a part in one table and in the next.
type partKey struct {
	host    string
	origins string // "" for the whole virtual host
}

// previous is the form of a part that a proxy acked last.
type previous struct {
	host     *ir.VirtualHost // nil if it acked none
	routes   []*ir.Route
	clusters []*ir.Cluster // that they lead to
}

func hostNamed(t *ir.RouteTable, name string) *ir.VirtualHost {
	if t == nil {
		return nil
	}
	at, found := slices.BinarySearchFunc(t.VirtualHosts, name, func(h *ir.VirtualHost, name string) int { return strings.Compare(h.Name, name) })
	if !found {
		return nil
	}
	return t.VirtualHosts[at]
}

// partsSince returns the parts of a table that differ from an older one (nil for none). A
// part is a whole virtual host if coarse is set, or if the routes of some objects are not
// in one run.
func partsSince(older, table *ir.RouteTable, coarse bool) []*routePart {
	var out []*routePart
	for _, h := range table.VirtualHosts {
		if old := hostNamed(older, h.Name); old == nil || !sameHost(old, h) {
			out = append(out, partsOf(old, h, coarse)...)
		}
	}
	return out
}

func partsOf(old, h *ir.VirtualHost, coarse bool) []*routePart {
	whole := []*routePart{{partKey: partKey{host: h.Name}, host: h, routes: h.Routes}}
	if old != nil {
		whole[0].previous = previous{host: old, routes: old.Routes}
	}
	if coarse || old == nil || !sameDomains(old, h) {
		return whole
	}
	now, apart := runsOf(h)
	then, wereApart := runsOf(old)
	if !apart || !wereApart {
		return whole
	}
	var out []*routePart
	for _, r := range now {
		p := &routePart{partKey: partKey{h.Name, r.origins}, host: h, routes: r.routes}
		if i := slices.IndexFunc(then, func(o run) bool { return o.origins == r.origins }); i >= 0 {
			p.previous = previous{host: old, routes: then[i].routes}
		}
		if !sameRoutes(p.previous.routes, p.routes) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return whole
	}
	return out
}

// run is a run of routes that come from the same objects.
type run struct {
	origins string
	routes  []*ir.Route
}

// runsOf returns the runs of a virtual host, and reports whether no two have the same
// origins.
func runsOf(h *ir.VirtualHost) (runs []run, apart bool) {
	seen := map[string]bool{}
	apart = true
	for i, r := range h.Routes {
		origins := fmt.Sprintf("%+v", r.Origins)
		if n := len(runs); n > 0 && runs[n-1].origins == origins {
			runs[n-1].routes = h.Routes[i+1-len(runs[n-1].routes)-1 : i+1]
			continue
		}
		apart = apart && !seen[origins]
		seen[origins] = true
		runs = append(runs, run{origins, h.Routes[i : i+1]})
	}
	return runs, apart
}

func sameHost(a, b *ir.VirtualHost) bool {
	return a == b || sameDomains(a, b) && sameRoutes(a.Routes, b.Routes)
}

func sameDomains(a, b *ir.VirtualHost) bool { return slices.Equal(a.Domains, b.Domains) }

func sameRoutes(a, b []*ir.Route) bool {
	return slices.EqualFunc(a, b, func(a, b *ir.Route) bool { return a == b || reflect.DeepEqual(a, b) })
}

// is reports whether two parts are the same part with the same content.
func (p *routePart) is(o *routePart) bool {
	return p.partKey == o.partKey && sameDomains(p.host, o.host) && sameRoutes(p.routes, o.routes)
}

// isBack reports whether the part is again in the form that the proxy acked before.
func (p *routePart) isBack() bool {
	return p.previous.host != nil && sameDomains(p.previous.host, p.host) && sameRoutes(p.previous.routes, p.routes)
}

// origin returns the objects to blame for what is new in the part.
func (p *routePart) origin() []diag.Ref {
	var refs []diag.Ref
	for _, r := range p.routes {
		if !slices.ContainsFunc(p.previous.routes, func(o *ir.Route) bool { return o == r || reflect.DeepEqual(o, r) }) {
			refs = append(refs, r.Origins...)
		}
	}
	if len(refs) == 0 {
		p.host.EachOrigin(func(ref diag.Ref) { refs = append(refs, ref) })
	}
	return diag.UniqueRefs(refs)
}

// namedIn reports whether a proxy's words name the part, or something in it.
func (p *routePart) namedIn(words string) bool {
	names := []string{p.partKey.host}
	if p.origins == "" {
		names = append(names, p.host.Domains...)
	} else {
		names = nil
	}
	for _, r := range p.routes {
		names = append(names, r.Name, r.Match.Regex, r.Match.Path, r.Match.Prefix)
		for _, ref := range r.Origins {
			names = append(names, ref.Name)
		}
	}
	return slices.ContainsFunc(names, func(n string) bool { return len(n) > 2 && mentions(words, n) })
}

// resolve finds the clusters of the form that was acked before.
func (p *routePart) resolve(find func(name string) *ir.Cluster) {
	var out []*ir.Cluster
	for _, r := range p.previous.routes {
		r.EachCluster(func(name string) {
			if c := find(name); c != nil && !slices.Contains(out, c) {
				out = append(out, c)
			}
		})
	}
	p.previous.clusters = out
}

// tableWithout returns the table with the last acked form in place of some parts. It keeps
// the domains of the table, so no domain has two hosts. A domain that had no host before is
// closed, and so is a part that was never acked.
func tableWithout(table *ir.RouteTable, parts []*routePart) *ir.RouteTable {
	if len(parts) == 0 {
		return table
	}
	of := map[string][]*routePart{}
	for _, p := range parts {
		of[p.partKey.host] = append(of[p.partKey.host], p)
	}
	next := *table
	next.VirtualHosts = make([]*ir.VirtualHost, 0, len(table.VirtualHosts))
	for _, h := range table.VirtualHosts {
		if of[h.Name] == nil {
			next.VirtualHosts = append(next.VirtualHosts, h)
			continue
		}
		next.VirtualHosts = append(next.VirtualHosts, hostsWithout(h, of[h.Name])...)
	}
	return &next
}

func hostsWithout(h *ir.VirtualHost, parts []*routePart) []*ir.VirtualHost {
	if i := slices.IndexFunc(parts, func(p *routePart) bool { return p.origins == "" }); i >= 0 {
		return previousHosts(h, parts[i].previous)
	}
	out := *h
	out.Routes = nil
	runs, _ := runsOf(h)
	for _, r := range runs {
		i := slices.IndexFunc(parts, func(p *routePart) bool { return p.origins == r.origins })
		if i < 0 {
			out.Routes = append(out.Routes, r.routes...)
			continue
		}
		out.Routes = append(out.Routes, parts[i].previousRoutes()...)
	}
	return []*ir.VirtualHost{&out}
}

// previousRoutes returns the routes that were acked last. If there were none, it returns
// closed routes, so that their requests go nowhere else.
func (p *routePart) previousRoutes() []*ir.Route {
	if p.previous.host != nil {
		return p.previous.routes
	}
	var out []*ir.Route
	for _, r := range p.routes {
		if !r.Optional {
			out = append(out, r.Closed(r.Match))
		}
	}
	return out
}

func previousHosts(h *ir.VirtualHost, before previous) []*ir.VirtualHost {
	switch {
	case before.host == nil:
		return []*ir.VirtualHost{h.Closed()}
	case sameDomains(before.host, h):
		return []*ir.VirtualHost{before.host}
	}
	old, fresh := *h, *h
	old.Domains, fresh.Domains, old.Routes = nil, nil, before.routes
	for _, d := range h.Domains {
		if slices.Contains(before.host.Domains, d) {
			old.Domains = append(old.Domains, d)
		} else {
			fresh.Domains = append(fresh.Domains, d)
		}
	}
	var out []*ir.VirtualHost
	if len(old.Domains) > 0 {
		out = append(out, &old)
	}
	if len(fresh.Domains) > 0 {
		closed := fresh.Closed()
		closed.Name += " (new)"
		out = append(out, closed)
	}
	return out
}
