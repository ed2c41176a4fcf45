package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// A proxy that has only the hosts that it calls has a part of each table. The part has the
// virtual hosts that the whole table has for these hosts. It has no wildcards, because a
// request that a wildcard takes makes the proxy ask for nothing: a host of its own beneath
// the wildcard would never be found. In place of a wildcard, a virtual host has the called
// hosts that the wildcard is for (docs/decisions/043-on-demand.md).

// layOutCalled returns the layout of the tables of the scope, by port, with at least the
// virtual hosts that take the called hosts, and with those domains that they have in the
// whole tables. Unless the whole layout is needed, it reads no other services.
func (c *writer) layOutCalled() []*tableLayout {
	if tables := c.plan.layOutContenders(c.scope, c.caller.called); tables != nil {
		return tables
	}
	whole := c.plan.layouts.Get(c.plan.r, c.scope)
	c.plan.problems.Add(whole.problems...)
	return whole.tables
}

// layOutContenders returns nil if only the whole tables will do.
func (p *plan) layOutContenders(s scope, called *mesh.Called) []*tableLayout {
	if s.sidecar.limits() || p.pilot().ShortNamesByCaller {
		return nil
	}
	tables, found := map[int]*table{}, map[int]*contenders{}
	for _, open := range p.openPortsIn(s) {
		tables[open.number] = newTable(open.number, open.first)
		tables[open.number].declaredBy(open.first.Origin.Ref())
	}
	for number := range tables {
		if found[number] = p.contendersAt(s, number, called.At(number)); found[number] == nil {
			return nil
		}
	}
	if tables[undeclaredPort] == nil && p.undeclaredSigns.Get(p.r, ruleScope(s)) != (undeclaredSigns{}) {
		if found[undeclaredPort] = p.contendersAt(s, undeclaredPort, called.At(undeclaredPort)); found[undeclaredPort] == nil {
			return nil
		}
		p.openForUndeclared(s, p.undeclaredIn(s), tables)
	}
	out := []*tableLayout{}
	for _, number := range slices.Sorted(maps.Keys(tables)) {
		out = append(out, p.layOutSome(s, tables[number], found[number]))
	}
	return out
}

// layOutSome lays out a table with some contenders in place of all services and rules.
func (p *plan) layOutSome(s scope, t *table, some *contenders) *tableLayout {
	for _, svc := range some.services {
		for _, port := range svc.Ports {
			if port.Number == t.port && p.routesHTTP(svc, port) {
				t.declaredBy(svc.Origin.Ref())
				t.add(newCandidate(svc, port, s.domain))
			}
		}
	}
	laid := p.layOutTable(s, t, some.undeclared())
	laid.stretches = []*stretch{{entries: laid.entries}}
	return laid
}

// calledTables returns tables with only the hosts that the caller calls, and lists of the
// clusters that they lead to.
func (c *writer) calledTables(laid []*tableLayout) (tables []*ir.RouteTable, clusters [][]*ir.Cluster) {
	for _, t := range laid {
		table, lists := c.calledTable(t)
		tables, clusters = append(tables, table), append(clusters, lists...)
	}
	slices.SortFunc(tables, byTableName)
	return tables, [][]*ir.Cluster{union(clusters)}
}

func (c *writer) calledTable(t *tableLayout) (*ir.RouteTable, [][]*ir.Cluster) {
	found := t.find(c.caller.called.At(t.port))
	var hosts []*ir.VirtualHost
	var clusters [][]*ir.Cluster
	for _, f := range found {
		if f.entry == nil {
			hosts = append(hosts, withDomains(t.unknown, f.named))
			continue
		}
		part := c.plan.hosts.Get(c.plan.r, hostKey{f.entry, nil})
		if part.varies {
			part = c.plan.hosts.Get(c.plan.r, hostKey{f.entry, c.caller})
		}
		c.plan.problems.Add(part.problems...)
		hosts, clusters = append(hosts, withDomains(part.host, f.named)), append(clusters, part.clusters)
	}
	out := &ir.RouteTable{Name: strconv.Itoa(t.port), IgnorePort: t.ignorePort, OnDemand: true, VirtualHosts: hosts}
	sortByName(out)
	return c.ownTable(out), clusters
}

// withDomains returns a virtual host with some hosts in place of its wildcards.
func withDomains(h *ir.VirtualHost, named []string) *ir.VirtualHost {
	isWild := func(domain string) bool { return strings.Contains(domain, "*") }
	if len(named) == 0 && !slices.ContainsFunc(h.Domains, isWild) {
		return h
	}
	out := *h
	out.Domains = append(slices.DeleteFunc(slices.Clone(h.Domains), isWild), named...)
	return &out
}

// foundHost is an entry that takes called hosts.
type foundHost struct {
	entry *entry   // nil for the virtual host of unknown hosts
	named []string // hosts that it takes by a wildcard, sorted
}

// find returns the entries that take some hosts, each once.
func (t *tableLayout) find(hosts []string) []*foundHost {
	var out []*foundHost
	known := map[*entry]*foundHost{}
	for _, host := range hosts {
		e, byName := t.taking(host)
		if e == nil && t.unknown == nil {
			continue
		}
		f := known[e]
		if f == nil {
			f = &foundHost{entry: e}
			known[e], out = f, append(out, f)
		}
		if !byName {
			f.named = append(f.named, host)
		}
	}
	return out
}

// wildDomain is a domain with a star.
type wildDomain struct {
	domain string // in lower case
	at     int    // index of its entry
}

// taking returns the entry that takes the requests for a host, as an Envoy finds it: by the
// name, else by the longest domain with a leading star, else by the longest with a star at
// the end. byName reports whether it is by the name. The entry is nil if there is none.
func (t *tableLayout) taking(host string) (e *entry, byName bool) {
	best := 0
	for _, b := range t.stretches {
		b.finding.Do(b.index)
		if at, ok := b.exact[host]; ok {
			return b.entries[at], true
		}
		for _, w := range b.wild {
			if rank := w.rank(host); rank > best {
				best, e = rank, b.entries[w.at]
			}
		}
	}
	return e, false
}

// index finds the domains of the entries.
func (b *stretch) index() {
	b.exact = map[string]int{}
	for at, e := range b.entries {
		for _, domain := range e.domains {
			if domain = strings.ToLower(domain); strings.Contains(domain, "*") {
				b.wild = append(b.wild, wildDomain{domain, at})
			} else {
				b.exact[domain] = at
			}
		}
	}
}

// rank returns 0 if the domain does not take the host, and more for a better match.
func (w wildDomain) rank(host string) int {
	const leading = 1 << 16 // more than the length of any domain
	head, tail, _ := strings.Cut(w.domain, "*")
	switch {
	case w.domain == "*":
		return 1
	case len(host) < len(w.domain):
		return 0
	case head == "" && strings.HasSuffix(host, tail):
		return leading + len(w.domain)
	case tail == "" && strings.HasPrefix(host, head):
		return 1 + len(w.domain)
	}
	return 0
}
