package compile

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// There are three sources of problems: reading an object, checking its rule against
// all others, and checking the whole mesh. Problems stay with their source and are
// collected from there.

// findings are the problems of one source, in order.
type findings struct{ collectors []*diag.Collector }

func (f *findings) add(found *diag.Collector) {
	if found != nil {
		f.collectors = append(f.collectors, found)
	}
}

func sameFindings(a, b *findings) bool {
	return slices.EqualFunc(a.collectors, b.collectors, (*diag.Collector).Equal)
}

// findAll returns all problems of objects that do not depend on a caller.
func (p *plan) findAll(none) diag.List {
	for _, parts := range [][]*findings{
		p.routeRules.found(&p.reader), p.egressRules.found(&p.reader), p.ingressRules.found(&p.reader), p.destinationRules.found(&p.reader),
		p.gateways.found(&p.reader), p.certificates.found(&p.reader), p.sidecars.found(&p.reader), p.peerAuthentications.found(&p.reader), p.policies.found(&p.reader), p.authentications.found(&p.reader), p.spoken.Get(p.r, none{}),
	} {
		for _, part := range parts {
			for _, found := range part.collectors {
				p.problems.Merge(found)
			}
		}
	}
	return p.problems.List()
}

// findWide returns the problems of the mesh as a whole.
func (p *plan) findWide(none) *findings {
	out := &findings{}
	for _, find := range []func(){
		func() { p.problems.Add(p.egress.Get(p.r, none{}).problems...) },
		p.checkSecrets,
		p.checkEdgeFaults,
		p.checkSecretFiles,
		p.checkRoots,
		func() { p.problems.Add(p.edgeSurvey.Get(p.r, none{}).problems...) },
		p.checkExternalNames,
	} {
		p.problems = &diag.Collector{}
		find()
		out.add(p.problems.Found())
	}
	return out
}

// findSpoken returns the findings that may report problems of other objects: the
// checks of some kinds do.
func (rd *reader) findSpoken(none) []*findings {
	return slices.Concat(rd.destinationPolicies.found(rd), rd.virtualServices.found(rd), []*findings{rd.wide.Get(rd.r, none{})})
}

// foundOf returns all findings that may contain problems of the given objects. They
// may contain problems of others too.
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
		m.routeRules.foundOf(&p.reader, byKind), m.egressRules.foundOf(&p.reader, byKind), m.ingressRules.foundOf(&p.reader, byKind), m.destinationRules.foundOf(&p.reader, byKind),
		m.gateways.foundOf(&p.reader, byKind), m.certificates.foundOf(&p.reader, byKind), m.sidecars.foundOf(&p.reader, byKind), m.peerAuthentications.foundOf(&p.reader, byKind), m.policies.foundOf(&p.reader, byKind), m.authentications.foundOf(&p.reader, byKind),
	}, m.spoken.Keep(r, none{})...)
}

// found returns the findings of all objects of the kind, in parts.
func (k *kind[T]) found(rd *reader) []*findings {
	out := make([]*findings, reportParts)
	for part := range out {
		out[part] = k.reports.Get(rd.r, part)
	}
	return out
}

func (k *kind[T]) findPart(p *plan, part int) *findings {
	out := &findings{}
	for _, r := range k.parts.under(&p.reader, part) {
		out.add(r.problems)
		if r.rule != nil {
			out.add(k.checks.Get(p.r, r.rule))
		}
	}
	return out
}

// foundOf returns the findings of those of the objects that are of this kind. It
// keeps their checks for a while, with their inputs, as the next query is often
// similar.
func (k *kind[T]) foundOf(rd *reader, objects map[string][]diag.Ref) *findings {
	out := &findings{}
	for _, ref := range objects[k.name] {
		read := k.readings[schema.Key(ref)]
		if read == nil {
			continue
		}
		out.add(read.problems)
		if read.rule != nil {
			out.add(k.checkAsked(rd, read.rule))
		}
	}
	return out
}

// maxAsked is how many checks of a kind are kept although nothing depends on them.
const maxAsked = 64

// checkAsked returns the check of a rule and keeps it. It drops the least recently
// used one if there are too many.
func (k *kind[T]) checkAsked(rd *reader, rule *T) *diag.Collector {
	if i := slices.Index(k.asked, rule); i >= 0 {
		k.asked = slices.Delete(k.asked, i, i+1)
	} else if len(k.asked) == maxAsked {
		k.checks.Drop(k.asked[0])
		k.asked = slices.Delete(k.asked, 0, 1)
	}
	k.asked = append(k.asked, rule)
	return k.checks.Keep(rd.r, rule)
}
