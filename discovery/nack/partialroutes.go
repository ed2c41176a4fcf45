package nack

import (
	"math"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// partialRoutes is a route table of which a proxy nacks parts. The proxy is sent the table
// with the last acked form in place of those parts, and all other parts as they should be.
//
// The parts to blame are found by trials: all suspected parts are left out except one
// group. Acked groups stay. Of a nacked group one half is tried, then the other, until a
// single part is left. Parts that the proxy's words name are tried apart from the rest.
// Nothing is sent twice, and one guilty part of n costs about log n responses.
//
// Parts that lead to a cluster which the proxy refuses are left out without a trial.
type partialRoutes struct {
	target *xds.Resource // present form of the table
	table  *ir.RouteTable
	splice func(*ir.RouteTable) *xds.Resource // nil if the table cannot be split
	acked  *ackedTable                        // nil if that is not known
	from   *compiled.View                     // that it is of, until another one is acked

	guilty       []*routePart
	held         []*routePart     // lead to clusters that the proxy refuses
	lacking      []refusedCluster // those clusters, and others
	search       []suspectGroup   // the last is tried next
	coarse       bool             // parts are whole virtual hosts
	proven       bool             // what stands in for parts was acked
	trial        trial
	tries        int
	nackedHashes []xds.Digest   // the last tables that were nacked
	sent         *ackedTable    // the table that the proxy should have now
	needs        *compiled.View // clusters of the routes that replace nacked parts
}

// ackedTable is a route table that a proxy acked, or is sent.
type ackedTable struct {
	*xds.Resource
	table *ir.RouteTable
}

// suspectGroup is a group of parts. Some of them may be to blame.
type suspectGroup struct {
	parts  []*routePart
	words  string // of the last nack of the group
	guilty bool   // at least one of them is to blame
	// exonerates means: if all parts of the group are acked, the group below is to blame.
	exonerates bool
}

type trial int

const (
	noTrial trial = iota
	trialOfGroup
	trialOfNone // of what stands in for all that is suspected
)

// maxTries bounds the trials for one version of a table. All parts that are still
// suspected after these trials are left out together.
const maxTries = 64

// newPartial begins with a table that was nacked. It returns nil if the table cannot be
// split into parts.
func (f *State) newPartial(t Subscription, v *compiled.View, c *Nacked, r *xds.Resource) *partialRoutes {
	table := compiled.TableNamed(v, r.Name)
	if table == nil {
		return nil
	}
	a := &partialRoutes{target: r, table: table, acked: f.lastAckedTable(t, r.Name), from: c.View, needs: c.needs, splice: v.Encoder.V3.PartialTable}
	a.note(r)
	if !a.suspectAll(partsSince(a.keptTable(), table, false), c.Words) || !a.proceed() {
		return nil
	}
	return a
}

func (a *partialRoutes) keptTable() *ir.RouteTable {
	if a.acked == nil {
		return nil
	}
	return a.acked.table
}

// suspectAll records that parts were nacked together. It returns false if there are none.
func (a *partialRoutes) suspectAll(parts []*routePart, words string) bool {
	a.search = nil
	if len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		p.resolve(a.cluster)
	}
	a.search = apart(suspectGroup{parts: parts, words: words, guilty: true})
	return true
}

// apart splits a group into the parts that the words name and the rest. The rest, which is
// last, is tried first.
func apart(g suspectGroup) []suspectGroup {
	var named, rest []*routePart
	for _, p := range g.parts {
		if p.namedIn(g.words) {
			named = append(named, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(named) == 0 || len(rest) == 0 {
		return []suspectGroup{g}
	}
	return []suspectGroup{{parts: named, words: g.words}, {parts: rest, words: g.words, exonerates: true}}
}

// cluster returns a cluster that the proxy acked, or nil for none.
func (a *partialRoutes) cluster(name string) *ir.Cluster {
	for _, v := range []*compiled.View{a.from, a.needs} {
		if v == nil {
			continue
		}
		i, found := slices.BinarySearchFunc(v.Config.Clusters, name, func(c *ir.Cluster, name string) int { return strings.Compare(c.Name, name) })
		if found {
			return v.Config.Clusters[i]
		}
	}
	return nil
}

// proceed decides what is sent next. It returns false if no form of the table can be sent.
func (a *partialRoutes) proceed() bool {
	defer a.need()
	for a.next() {
		switch {
		case a.trial == noTrial:
			return true
		case a.acked != nil && a.sent.Hash == a.acked.Hash:
			a.conclude()
		case !slices.Contains(a.nackedHashes, a.sent.Hash):
			return true
		case !a.reject(""):
			return false
		}
	}
	return false
}

// next begins the next trial, or ends the search.
func (a *partialRoutes) next() bool {
	a.trial = noTrial
	for {
		switch top := a.top(); {
		case top == nil && a.proven:
			return a.send(0)
		case top != nil && !top.guilty && a.tries < maxTries && a.send(1):
			a.trial = trialOfGroup
			a.tries++
			return true
		case !a.proven && a.send(0):
			a.trial = trialOfNone
			return true
		case !a.proven:
			if !a.coarser() {
				return false
			}
		case len(top.parts) == 1 || a.tries >= maxTries:
			a.blame()
		default:
			a.halve()
		}
	}
}

func (a *partialRoutes) top() *suspectGroup {
	if len(a.search) == 0 {
		return nil
	}
	return &a.search[len(a.search)-1]
}

// blame records that the group on trial is to blame.
func (a *partialRoutes) blame() {
	top := a.top()
	for _, p := range top.parts {
		p.words = top.words
	}
	a.guilty = append(a.guilty, top.parts...)
	a.search = a.search[:len(a.search)-1]
}

func (a *partialRoutes) halve() {
	top := *a.top()
	half := len(top.parts) / 2
	a.search = append(a.search[:len(a.search)-1],
		suspectGroup{parts: top.parts[half:], words: top.words},
		suspectGroup{parts: top.parts[:half:half], words: top.words, exonerates: true})
}

// send sends the table without the suspected parts, except those of the last groups. It
// returns false if there is no such table.
func (a *partialRoutes) send(groups int) bool {
	out := slices.Concat(a.guilty, a.held)
	for _, g := range a.search[:len(a.search)-groups] {
		out = append(out, g.parts...)
	}
	table := tableWithout(a.table, out)
	r := a.target
	if table != a.table {
		r = a.splice(table)
	}
	if r == nil || r.Shell == nil {
		return false
	}
	a.sent = &ackedTable{r, table}
	return true
}

// need keeps the clusters that the acked form of nacked parts leads to, and those that were
// needed before, until the proxy acks something else.
func (a *partialRoutes) need() {
	var clusters []*ir.Cluster
	add := func(parts []*routePart) {
		for _, p := range parts {
			clusters = append(clusters, p.previous.clusters...)
		}
	}
	add(a.guilty)
	add(a.held)
	for _, g := range a.search {
		add(g.parts)
	}
	if a.needs != nil && !a.proven {
		clusters = append(clusters, a.needs.Config.Clusters...)
	}
	slices.SortStableFunc(clusters, compiled.ByClusterName)
	clusters = slices.CompactFunc(clusters, func(a, b *ir.Cluster) bool { return a.Name == b.Name })
	a.needs = &compiled.View{Config: &ir.Config{Clusters: clusters}, Serial: math.MinInt64}
}

// ack records that the proxy acked what it was sent.
func (a *partialRoutes) ack() {
	a.acked = a.sent
	a.conclude()
	a.proceed()
}

// conclude ends a trial that was acked.
func (a *partialRoutes) conclude() {
	a.from, a.proven = nil, true
	if a.trial != trialOfGroup {
		return
	}
	exonerated := a.top().exonerates
	a.search = a.search[:len(a.search)-1]
	if next := a.top(); next != nil && exonerated {
		next.guilty = true
	}
}

// nack records that the proxy nacked what it was sent. It returns false if the proxy
// accepts no form of the table.
func (a *partialRoutes) nack(words string) bool {
	a.note(a.sent.Resource)
	return a.reject(words) && a.proceed()
}

// note remembers a table that was nacked.
func (a *partialRoutes) note(r *xds.Resource) {
	a.nackedHashes = append(a.nackedHashes[max(0, len(a.nackedHashes)-maxTries):], r.Hash)
}

// reject ends a trial that was nacked.
func (a *partialRoutes) reject(words string) bool {
	top := a.top()
	if a.trial != trialOfGroup {
		return a.coarser()
	}
	top.guilty, top.exonerates = true, false
	if words != "" {
		top.words = words
	}
	return true
}

// coarser starts the search again with whole virtual hosts as parts. It returns false if it
// did so before.
func (a *partialRoutes) coarser() bool {
	if a.coarse {
		return false
	}
	words := ""
	if top := a.top(); top != nil {
		words = top.words
	} else if len(a.guilty) > 0 {
		words = a.guilty[0].words
	}
	a.coarse, a.guilty = true, nil
	return a.suspectAll(partsSince(a.keptTable(), a.table, true), words)
}

// retarget records a new target of the table. Parts to blame and suspected parts keep this
// state if they are unchanged. All others are tried at once, except those that lead to
// lacking clusters.
func (a *partialRoutes) retarget(r *xds.Resource, table *ir.RouteTable, at *compiled.View, lacking []refusedCluster) bool {
	before := slices.Concat(a.guilty, a.held)
	for _, g := range a.search {
		before = append(before, g.parts...)
	}
	if a.proven || a.from == nil {
		a.from = at
	}
	a.lacking = lacking
	fresh, held := a.partsAfter(before, table)
	a.held = held
	a.target, a.table, a.proven, a.tries = r, table, false, 0
	same := func(old *routePart) *routePart {
		i := slices.IndexFunc(fresh, old.is)
		if i < 0 {
			return nil
		}
		p := fresh[i]
		fresh = slices.Delete(fresh, i, i+1)
		p.words = old.words
		return p
	}
	a.guilty = those(a.guilty, same)
	below := true // whether the group below is complete
	for i, g := range a.search {
		parts := those(g.parts, same)
		complete := len(parts) == len(g.parts)
		g.guilty = g.guilty && complete
		g.exonerates = g.exonerates && complete && below
		g.parts, below = parts, complete
		a.search[i] = g
	}
	a.search = slices.DeleteFunc(a.search, func(g suspectGroup) bool { return len(g.parts) == 0 })
	if len(fresh) > 0 {
		a.search = append(a.search, suspectGroup{parts: fresh})
	}
	return a.proceed()
}

func those(old []*routePart, same func(*routePart) *routePart) []*routePart {
	var out []*routePart
	for _, p := range old {
		if p = same(p); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// partsAfter are the parts of the next table that the proxy has not acked, without those
// that are held back. For parts that were left out, the last acked form is what stood in
// for them.
func (a *partialRoutes) partsAfter(left []*routePart, table *ir.RouteTable) (fresh, held []*routePart) {
	formers := map[partKey]previous{}
	for _, p := range left {
		formers[p.partKey] = p.previous
	}
	for _, h := range table.VirtualHosts {
		old := hostNamed(a.keptTable(), h.Name)
		_, whole := formers[partKey{host: h.Name}]
		if !whole && old != nil && sameHost(old, h) {
			continue
		}
		parts := a.withPrevious(partsOf(old, h, a.coarse || whole), formers)
		if old != nil && slices.ContainsFunc(parts, func(p *routePart) bool { return p.previous.host == nil && refusedBy(p.routes, a.lacking) != nil }) {
			// What its requests got before is what others say.
			parts = a.withPrevious(partsOf(old, h, true), formers)
		}
		for _, p := range parts {
			switch {
			case p.isBack():
			case a.hold(p):
				held = append(held, p)
			default:
				fresh = append(fresh, p)
			}
		}
	}
	return fresh, held
}

// withPrevious finds what the proxy acked last of parts.
func (a *partialRoutes) withPrevious(parts []*routePart, formers map[partKey]previous) []*routePart {
	for _, p := range parts {
		if before, known := formers[p.partKey]; known {
			p.previous = before
		} else {
			p.resolve(a.cluster)
		}
	}
	return parts
}

// isAcked reports whether the proxy acked what it was sent.
func (a *partialRoutes) isAcked() bool { return a.acked != nil && a.acked.Hash == a.sent.Hash }

// clean reports whether nothing of the table is nacked or held back.
func (a *partialRoutes) clean() bool { return len(a.guilty)+len(a.held)+len(a.search) == 0 }

// blamed visits the parts to blame, and those that are held back.
func (a *partialRoutes) blamed(visit func(*Nacked) bool) bool {
	for _, p := range slices.Concat(a.guilty, a.held) {
		if !p.suspected && !visit(&Nacked{Words: p.words, blame: true, Origins: p.origin()}) {
			return false
		}
	}
	return true
}
