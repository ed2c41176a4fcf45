package compile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// A proxy that has only the hosts that it calls has a part of each table. The part has the
// virtual hosts that the whole table has for these hosts. It has no wildcards, because a
// request that a wildcard takes makes the proxy ask for nothing: a host of its own beneath
// the wildcard would never be found. In place of a wildcard, a virtual host has the called
// hosts that the wildcard is for (docs/decisions/043-on-demand.md).

// calledTables returns the tables of the scope with only the hosts that the caller calls,
// and lists of the clusters that they lead to.
func (c *writer) calledTables(http *outbound) (tables []*ir.RouteTable, clusters [][]*ir.Cluster) {
	if c.caller.called.Everything() {
		tables, clusters = c.tablesOf(http), [][]*ir.Cluster{http.clusters}
		for i, t := range tables {
			marked := *t
			marked.OnDemand = true
			tables[i] = c.ownTable(&marked)
		}
		return tables, clusters
	}
	for _, t := range http.tables {
		table, lists := c.calledTable(t)
		tables, clusters = append(tables, table), append(clusters, lists...)
	}
	slices.SortFunc(tables, byTableName)
	return tables, [][]*ir.Cluster{union(clusters)}
}

func (c *writer) calledTable(t *scopeTable) (*ir.RouteTable, [][]*ir.Cluster) {
	found := t.find(c.caller.called.At(t.port))
	var hosts []*ir.VirtualHost
	var clusters [][]*ir.Cluster
	for _, f := range found {
		if f.entry == nil {
			hosts = append(hosts, withDomains(t.unknown, f.named))
			continue
		}
		part := f.part
		if f.part.varies {
			part = c.plan.hosts.Get(c.plan.r, hostKey{f.entry, c.caller})
			c.plan.problems.Add(part.problems...)
		}
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
	entry *entry // nil for the virtual host of unknown hosts
	part  *hostPart
	named []string // hosts that it takes by a wildcard, sorted
}

// find returns the entries that take some hosts, each once.
func (t *scopeTable) find(hosts []string) []*foundHost {
	var out []*foundHost
	known := map[*entry]*foundHost{}
	for _, host := range hosts {
		e, part, byName := t.taking(host)
		if e == nil && t.unknown == nil {
			continue
		}
		f := known[e]
		if f == nil {
			f = &foundHost{entry: e, part: part}
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
func (t *scopeTable) taking(host string) (e *entry, part *hostPart, byName bool) {
	best := 0
	for i, b := range t.tableLayout.stretches {
		b.finding.Do(b.index)
		if at, ok := b.exact[host]; ok {
			return b.entries[at], t.stretches[i].parts[at], true
		}
		for _, w := range b.wild {
			if rank := w.rank(host); rank > best {
				best, e, part = rank, b.entries[w.at], t.stretches[i].parts[w.at]
			}
		}
	}
	return e, part, false
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
