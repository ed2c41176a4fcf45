package v1

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Losses are the parts of a configuration that v1 cannot express. From one configuration
// to the next, only parts that are not the same values are examined. The zero value is
// for an empty configuration.
type Losses struct {
	config    *ir.Config
	ip        string
	parts     map[part]diag.Interned // that lose something
	listeners diag.List
}

// part is a cluster, or a virtual host in a table.
type part struct {
	table string
	value any
}

// Advance moves to a configuration for a proxy with the given address. It returns the
// losses of the parts that are new in it, which are all that List gains. It may return a
// loss more than once.
func (l *Losses) Advance(to *ir.Config, ip string) (came diag.List) {
	from := cmp.Or(l.config, &ir.Config{})
	same := slices.Equal(from.Listeners, to.Listeners) && slices.Equal(from.RouteTables, to.RouteTables) && l.ip == ip
	if l.config, l.ip = to, ip; l.parts == nil {
		l.parts = map[part]diag.Interned{}
	}
	came = turnOver(l, "", from.Clusters, to.Clusters, func(c *ir.Cluster) diag.List { _, lost := OneCluster(c); return lost })
	before := map[string][]*ir.VirtualHost{}
	for _, t := range from.RouteTables {
		before[t.Name] = t.VirtualHosts
	}
	for _, t := range to.RouteTables {
		came = append(came, l.turnOverTable(t.Name, before[t.Name], t.VirtualHosts)...)
		delete(before, t.Name)
	}
	for name, hosts := range before {
		l.turnOverTable(name, hosts, nil)
	}
	if !same {
		_, lost := Listeners(to, ip)
		l.listeners = lost.Coded(diag.LostInV1)
		came = append(came, l.listeners...)
	}
	return came
}

func (l *Losses) turnOverTable(name string, was, is []*ir.VirtualHost) diag.List {
	return turnOver(l, name, was, is, func(h *ir.VirtualHost) diag.List { _, lost := OneHost(h); return lost })
}

// turnOver drops the parts that are gone, examines the new ones, and returns their
// losses. Lists that changed little have the same beginning and end.
func turnOver[P comparable](l *Losses, table string, was, is []P, look func(P) diag.List) (came diag.List) {
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	gone := make(map[P]bool, len(was))
	for _, p := range was {
		gone[p] = true
	}
	for _, p := range is {
		if gone[p] {
			delete(gone, p)
		} else if lost := look(p); len(lost) > 0 {
			kept := diag.Intern(lost, diag.LostInV1)
			l.parts[part{table, p}], came = kept, append(came, kept.List()...)
		}
	}
	for p := range gone {
		delete(l.parts, part{table, p})
	}
	return came
}

// List returns the losses of some objects, each once, sorted by text.
func (l *Losses) List(about func(diag.Ref) bool) diag.List {
	found := map[diag.Problem]bool{}
	note := func(lost diag.List) {
		for _, p := range lost {
			if about(p.Object) {
				found[p] = true
			}
		}
	}
	for _, lost := range l.parts {
		note(lost.List())
	}
	note(l.listeners)
	return slices.SortedFunc(maps.Keys(found), func(a, b diag.Problem) int { return strings.Compare(a.String(), b.String()) })
}
