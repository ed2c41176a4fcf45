package compile

import (
	"cmp"
	"fmt"
	"hash/fnv"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// declared is what every rule has from the object that it was read from.
type declared struct {
	ref    diag.Ref
	object *schema.Object
}

// reading is an object of one kind as it was read: by itself, without a look at
// anything else.
type reading[T any] struct {
	declared
	settings *mesh.Settings
	rule     *T // nil when it cannot be used
	problems *diag.Collector
}

// kind reads the objects of one kind, and hands the rules to whoever finds them.
type kind[T any] struct {
	name string
	// rule is the rule in a spec, nil when it cannot be used; false for a spec
	// of another type.
	rule func(p *plan, of declared, spec any) (rule *T, ok bool)
	// instead is a spec that closes what an object is for whose own does not decode; nil
	// for a kind that has none.
	instead func(o *schema.Object) any
	// take hands on which rules are others now.
	take []func([]change[T])

	readings map[schema.Key]*reading[T]
	all      *index[none, reading[T]] // in tie-break order
	checks   *query.Query[*T, *diag.Collector]
	asked    []*T // the last of which the problems were asked for by themselves, each once
	// What is found of all is in some parts, of which a change concerns one.
	parts   *index[int, reading[T]]
	reports *query.Query[int, *findings]
}

const reportParts = 64

func partOf(of declared) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of.ref.Namespace + "/" + of.ref.Name))
	return int(h.Sum32() % reportParts)
}

// none is the key of what there is one of.
type none struct{}

// newKind has check say what is wrong with a rule beside what it shows by
// itself.
func newKind[T, S any](m *model, name string, order func(a, b declared) int, read func(*plan, declared, *S) *T, check func(*plan, *T)) *kind[T] {
	compare := func(a, b *reading[T]) int { return order(a.declared, b.declared) }
	k := &kind[T]{
		name: name, readings: map[schema.Key]*reading[T]{},
		rule: func(p *plan, of declared, spec any) (*T, bool) {
			typed, ok := spec.(*S)
			if !ok {
				return nil, false
			}
			return read(p, of, typed), true
		},
		all:   newIndex(m.graph, compare, func(*reading[T]) []none { return []none{{}} }),
		parts: newIndex(m.graph, compare, func(r *reading[T]) []int { return []int{partOf(r.declared)} }),
		checks: newQuery(m, (*diag.Collector).Equal, func(p *plan, rule *T) *diag.Collector {
			check(p, rule)
			return p.problems.Found()
		}),
	}
	k.reports = newQuery(m, sameFindings, k.findPart)
	return k
}

// update reads the objects that changed.
func (k *kind[T]) update(m *model, changes []change[schema.Object]) {
	var rules []change[T]
	var readings []change[reading[T]]
	for _, ch := range changes {
		var rule change[T]
		var read change[reading[T]]
		key := schema.Change{Before: ch.before, After: ch.after}.Key()
		if read.before = k.readings[key]; read.before != nil {
			rule.before = read.before.rule
			delete(k.readings, key)
		}
		if ch.after != nil {
			read.after = k.readingOf(m, ch.after)
			rule.after = read.after.rule
			k.readings[key] = read.after
		}
		readings = append(readings, read)
		if rule != (change[T]{}) {
			rules = append(rules, rule)
		}
	}
	k.all.update(readings)
	k.parts.update(readings)
	for _, take := range k.take {
		take(rules)
	}
}

// readingOf is a pure function of the object and the settings, so it has no reader,
// and all models have one.
func (k *kind[T]) readingOf(m *model, o *schema.Object) *reading[T] {
	if known, ok := o.Recalled().(*reading[T]); ok && known.object == o && known.settings == m.settings {
		return known
	}
	out := k.read(m, o)
	schema.Remember(o, out)
	return out
}

func (k *kind[T]) read(m *model, o *schema.Object) *reading[T] {
	p := m.context(nil)
	out := &reading[T]{declared: declared{o.Key().Ref(), o}, settings: m.settings}
	spec, err := o.Spec()
	ok := err == nil
	if ok {
		out.rule, ok = k.rule(p, out.declared, spec)
	}
	if !ok {
		message := "the object is left out, its spec does not decode: %v"
		if k.instead != nil {
			if spec := k.instead(o); spec != nil {
				out.rule, _ = k.rule(p, out.declared, spec)
				message = "requests to the host fail, as the spec does not decode: %v"
			}
		}
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.Malformed, Code: diag.PartLeftOut, Object: out.ref, Field: "spec",
			Message: fmt.Sprintf(message, err),
		})
	}
	var all diag.Collector
	own, known := schema.OwnOf(o), p.problems.List()
	all.Add(own.WarningsBeside(known)...)
	all.Merge(p.problems)
	all.Add(own.ViolationsBeside(known)...)
	out.problems = all.Found()
	return out
}

// rules are those of the kind that can be used, in tie-break order.
func (k *kind[T]) rules(p *plan) []*T {
	var out []*T
	for _, r := range k.all.under(p, none{}) {
		if r.rule != nil {
			out = append(out, r.rule)
		}
	}
	return out
}

// inKeyOrder is the tie-break order of legacy kinds.
func inKeyOrder(a, b declared) int { return mesh.CompareKeys(a.object, b.object) }

// inAgeOrder is the tie-break order of networking kinds: the oldest first, as in
// Istio, unless the mesh wants Pilot's.
func (m *model) inAgeOrder(a, b declared) int {
	if m.pilot().AnyNamespaceRules {
		return inKeyOrder(a, b)
	}
	return cmp.Or(a.object.Meta.CreationTimestamp.Compare(b.object.Meta.CreationTimestamp.Time), inKeyOrder(a, b))
}
