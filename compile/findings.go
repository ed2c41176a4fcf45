package compile

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// What is wrong with objects is found by three: the reading of an object, the check
// of its rule among all others, and a look at the whole mesh. What is found stays
// where it was found, and is gathered from there.

// findings are what was found in one place, in order.
type findings struct{ of []*diag.Collector }

func (f *findings) add(found *diag.Collector) {
	if found != nil {
		f.of = append(f.of, found)
	}
}

func sameFindings(a, b *findings) bool {
	return slices.EqualFunc(a.of, b.of, (*diag.Collector).Equal)
}

// findAll is everything that is wrong with objects, whoever asks.
func (p *plan) findAll(none) diag.List {
	for _, parts := range [][]*findings{
		p.routeRules.found(p), p.egressRules.found(p), p.ingressRules.found(p), p.destinationRules.found(p),
		p.gateways.found(p), p.certificates.found(p), p.sidecars.found(p), p.spoken.Get(p.r, none{}),
	} {
		for _, part := range parts {
			for _, found := range part.of {
				p.problems.Merge(found)
			}
		}
	}
	return p.problems.List()
}

// findWide is what is wrong with the mesh as a whole.
func (p *plan) findWide(none) *findings {
	out := &findings{}
	for _, find := range []func(){
		func() { p.problems.Add(p.egress.Get(p.r, none{}).problems...) },
		p.checkSecrets,
		p.checkEdgeFaults,
		p.checkSecretFiles,
		func() { p.problems.Add(p.edgeSurvey.Get(p.r, none{}).problems...) },
		p.checkExternalNames,
	} {
		p.problems = &diag.Collector{}
		find()
		out.add(p.problems.Found())
	}
	return out
}

// findSpoken is what is told of objects elsewhere than by themselves: the checks of
// some kinds tell of what others say.
func (p *plan) findSpoken(none) []*findings {
	return slices.Concat(p.destinationPolicies.found(p), p.virtualServices.found(p), []*findings{p.wide.Get(p.r, none{})})
}

// foundOf is what there may be about some objects, and about others.
func (m *model) foundOf(r *query.Reader, objects map[diag.Ref]bool) []*findings {
	byKind := map[string][]diag.Ref{}
	for ref := range objects {
		byKind[ref.Kind] = append(byKind[ref.Kind], ref)
	}
	for _, refs := range byKind {
		slices.SortFunc(refs, func(a, b diag.Ref) int { return strings.Compare(a.String(), b.String()) })
	}
	p := m.context(r)
	return append([]*findings{
		m.routeRules.foundOf(p, byKind), m.egressRules.foundOf(p, byKind), m.ingressRules.foundOf(p, byKind), m.destinationRules.foundOf(p, byKind),
		m.gateways.foundOf(p, byKind), m.certificates.foundOf(p, byKind), m.sidecars.foundOf(p, byKind),
	}, m.spoken.Keep(r, none{})...)
}

// found are the problems of all objects of the kind, in parts.
func (k *kind[T]) found(p *plan) []*findings {
	out := make([]*findings, reportParts)
	for part := range out {
		out[part] = k.reports.Get(p.r, part)
	}
	return out
}

func (k *kind[T]) findPart(p *plan, part int) *findings {
	out := &findings{}
	for _, r := range k.parts.under(p, part) {
		out.add(r.problems)
		if r.rule != nil {
			out.add(k.checks.Get(p.r, r.rule))
		}
	}
	return out
}

// foundOf is what the objects of the kind among some have by themselves. Their checks
// stay for a while, and what they go by: what is asked next is often alike.
func (k *kind[T]) foundOf(p *plan, objects map[string][]diag.Ref) *findings {
	out := &findings{}
	for _, ref := range objects[k.name] {
		read := k.readings[schema.Key(ref)]
		if read == nil {
			continue
		}
		out.add(read.problems)
		if read.rule != nil {
			out.add(k.checkAsked(p, read.rule))
		}
	}
	return out
}

// maxAsked is how many checks of a kind stay that nobody depends on.
const maxAsked = 64

// checkAsked is the check of a rule, in place of the one that was asked for least
// recently.
func (k *kind[T]) checkAsked(p *plan, rule *T) *diag.Collector {
	if i := slices.Index(k.asked, rule); i >= 0 {
		k.asked = slices.Delete(k.asked, i, i+1)
	} else if len(k.asked) == maxAsked {
		k.checks.Drop(k.asked[0])
		k.asked = slices.Delete(k.asked, 0, 1)
	}
	k.asked = append(k.asked, rule)
	return k.checks.Keep(p.r, rule)
}
