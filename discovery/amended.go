package discovery

import (
	"math"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// amended is a route table of which a proxy refuses parts. It is told the table with
// what it took before in place of those, and everything else of it is as it should be.
//
// Who is to blame is found by trials: what is suspected is left out but for one group
// of it. What the proxy takes stays; of what it refuses one half is tried, and then
// the other, until a single part is left. A group that its words name is tried apart
// from the rest. So nothing is sent twice, and one guilty part of n costs about log n
// responses.
type amended struct {
	target *xds.Resource // the table as it should be
	table  *ir.RouteTable
	splice func(*ir.RouteTable) *xds.Resource // nil for what cannot be one
	kept   *tableTaken                        // nil: nothing that is known
	from   *compiled.View                     // that it is of, until another one is taken

	guilty  []*part
	search  []suspected // the last is tried next
	coarse  bool        // parts are whole virtual hosts
	proven  bool        // what stands in for parts was taken
	trial   trial
	tries   int
	refusal []xds.Digest   // what was refused, the last of them
	told    *tableTaken    // what the proxy is to have now
	needs   *compiled.View // the clusters that what stands in for parts leads to
}

// tableTaken is a route table that a proxy took, or is to take.
type tableTaken struct {
	*xds.Resource
	table *ir.RouteTable
}

// suspected is a group of parts of which some may be to blame.
type suspected struct {
	parts  []*part
	words  string // of the last refusal of them
	guilty bool   // some of them surely are
	// exonerates: if all of them are taken, the group below is to blame.
	exonerates bool
}

type trial int

const (
	noTrial trial = iota
	trialOfGroup
	trialOfNone // of what stands in for all that is suspected
)

// maxTries bounds the trials for one version of a table. What is suspected after them
// is left out together.
const maxTries = 64

// amend begins with a table that was refused, nil where it has no parts to be told
// apart.
func (t *subscribed) amend(v *compiled.View, c *refusedContent, r *xds.Resource) *amended {
	table := compiled.TableNamed(v, r.Name)
	if table == nil {
		return nil
	}
	a := &amended{target: r, table: table, kept: t.tableTaken(r.Name), from: c.view, needs: c.needs, splice: v.Encoder.V3.PartialTable}
	a.note(r)
	if !a.suspectAll(partsSince(a.keptTable(), table, false), c.words) || !a.proceed() {
		return nil
	}
	return a
}

func (a *amended) keptTable() *ir.RouteTable {
	if a.kept == nil {
		return nil
	}
	return a.kept.table
}

// suspectAll takes in that parts were refused together. It reports false when there
// are none.
func (a *amended) suspectAll(parts []*part, words string) bool {
	a.search = nil
	if len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		p.resolve(a.cluster)
	}
	a.search = apart(suspected{parts: parts, words: words, guilty: true})
	return true
}

// apart splits a group into those that the words name, and the rest, which comes first.
func apart(g suspected) []suspected {
	var named, rest []*part
	for _, p := range g.parts {
		if p.namedIn(g.words) {
			named = append(named, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(named) == 0 || len(rest) == 0 {
		return []suspected{g}
	}
	return []suspected{{parts: named, words: g.words}, {parts: rest, words: g.words, exonerates: true}}
}

// cluster finds one of what the proxy took, nil for none.
func (a *amended) cluster(name string) *ir.Cluster {
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

// proceed finds what is told next. It reports false when nothing of the table can be.
func (a *amended) proceed() bool {
	defer a.need()
	for a.next() {
		switch {
		case a.trial == noTrial:
			return true
		case a.kept != nil && a.told.Hash == a.kept.Hash:
			a.conclude()
		case !slices.Contains(a.refusal, a.told.Hash):
			return true
		case !a.reject(""):
			return false
		}
	}
	return false
}

// next begins the next trial, or ends them.
func (a *amended) next() bool {
	a.trial = noTrial
	for {
		switch top := a.top(); {
		case top == nil && a.proven:
			return a.tell(0)
		case top != nil && !top.guilty && a.tries < maxTries && a.tell(1):
			a.trial = trialOfGroup
			a.tries++
			return true
		case !a.proven && a.tell(0):
			a.trial = trialOfNone
			return true
		case !a.proven:
			if !a.coarser() {
				return false
			}
		case len(top.parts) == 1 || a.tries >= maxTries:
			a.convict()
		default:
			a.halve()
		}
	}
}

func (a *amended) top() *suspected {
	if len(a.search) == 0 {
		return nil
	}
	return &a.search[len(a.search)-1]
}

// convict takes the group on trial for what is to blame.
func (a *amended) convict() {
	top := a.top()
	for _, p := range top.parts {
		p.words = top.words
	}
	a.guilty = append(a.guilty, top.parts...)
	a.search = a.search[:len(a.search)-1]
}

func (a *amended) halve() {
	top := *a.top()
	half := len(top.parts) / 2
	a.search = append(a.search[:len(a.search)-1],
		suspected{parts: top.parts[half:], words: top.words},
		suspected{parts: top.parts[:half:half], words: top.words, exonerates: true})
}

// tell has the proxy told the table without what is suspected, but for that of the
// last groups. It reports false where there is no such table.
func (a *amended) tell(groups int) bool {
	out := slices.Clone(a.guilty)
	for _, g := range a.search[:len(a.search)-groups] {
		out = append(out, g.parts...)
	}
	table := without(a.table, out)
	r := a.target
	if table != a.table {
		r = a.splice(table)
	}
	if r == nil || r.Shell == nil {
		return false
	}
	a.told = &tableTaken{r, table}
	return true
}

// need keeps the clusters that what is not taken led to before, and those that are
// needed already until something else is taken.
func (a *amended) need() {
	var clusters []*ir.Cluster
	add := func(parts []*part) {
		for _, p := range parts {
			clusters = append(clusters, p.before.clusters...)
		}
	}
	add(a.guilty)
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

// taken takes in that the proxy took what it was told.
func (a *amended) taken() {
	a.kept = a.told
	a.conclude()
	a.proceed()
}

// conclude ends a trial of what is taken.
func (a *amended) conclude() {
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

// refused takes in that it did not. It reports false when nothing of the table is
// taken.
func (a *amended) refused(words string) bool {
	a.note(a.told.Resource)
	return a.reject(words) && a.proceed()
}

// note remembers what was refused.
func (a *amended) note(r *xds.Resource) {
	a.refusal = append(a.refusal[max(0, len(a.refusal)-maxTries):], r.Hash)
}

// reject ends a trial of what is refused.
func (a *amended) reject(words string) bool {
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

// coarser begins again with whole virtual hosts. It reports false when it has done so
// before.
func (a *amended) coarser() bool {
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

// aim takes in that the table should be another one. What is to blame or suspected and
// is the same as before stays so; everything else is tried at once.
func (a *amended) aim(r *xds.Resource, table *ir.RouteTable, at *compiled.View) bool {
	before := slices.Clone(a.guilty)
	for _, g := range a.search {
		before = append(before, g.parts...)
	}
	if a.proven || a.from == nil {
		a.from = at
	}
	fresh := a.partsAfter(before, table)
	a.target, a.table, a.proven, a.tries = r, table, false, 0
	same := func(old *part) *part {
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
	for i, g := range a.search {
		parts := those(g.parts, same)
		if len(parts) != len(g.parts) {
			g.guilty, g.exonerates = false, false
		}
		g.parts = parts
		a.search[i] = g
	}
	a.search = slices.DeleteFunc(a.search, func(g suspected) bool { return len(g.parts) == 0 })
	if len(fresh) > 0 {
		a.search = append(a.search, suspected{parts: fresh})
	}
	return a.proceed()
}

func those(old []*part, same func(*part) *part) []*part {
	var out []*part
	for _, p := range old {
		if p = same(p); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// partsAfter are what of the next table the proxy has not taken. What it took before
// of those that were left out is known from them: it has what stood in for them.
func (a *amended) partsAfter(left []*part, table *ir.RouteTable) []*part {
	formers := map[partKey]former{}
	for _, p := range left {
		formers[p.partKey] = p.before
	}
	var out []*part
	for _, h := range table.VirtualHosts {
		old := hostNamed(a.keptTable(), h.Name)
		_, whole := formers[partKey{host: h.Name}]
		if !whole && old != nil && sameHost(old, h) {
			continue
		}
		for _, p := range partsOf(old, h, a.coarse || whole) {
			if before, known := formers[p.partKey]; known {
				p.before = before
			} else {
				p.resolve(a.cluster)
			}
			if !p.isBack() {
				out = append(out, p)
			}
		}
	}
	return out
}

// isTaken reports whether the proxy has what it is told.
func (a *amended) isTaken() bool { return a.kept != nil && a.kept.Hash == a.told.Hash }

// clean reports whether nothing of the table is refused.
func (a *amended) clean() bool { return len(a.guilty) == 0 && len(a.search) == 0 }

// blamed visits what the proxy does not take.
func (a *amended) blamed(visit func(*refusedContent) bool) bool {
	for _, p := range a.guilty {
		if !visit(&refusedContent{words: p.words, blame: true, origins: p.origin()}) {
			return false
		}
	}
	return true
}
