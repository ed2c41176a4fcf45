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

// declared is the part that every rule has in common: the object that it was read
// from.
type declared struct {
	ref    diag.Ref
	object *schema.Object
	// unknown are the fields of the spec that this version does not know. Another
	// version stored them.
	unknown []string
}

// reading is the result of reading one object by itself, without looking at any
// other.
type reading[T any] struct {
	declared
	settings *mesh.Settings
	rule     *T // nil if it cannot be used
	problems *diag.Collector
}

// kind reads the objects of one kind and passes their rules to the indexes.
type kind[T any] struct {
	name string
	// rule returns the rule in a spec, or nil if it cannot be used. ok is false for
	// a spec of another type.
	rule func(p *plan, of declared, spec any) (rule *T, ok bool)
	// instead returns a spec that fails closed, for an object whose own spec does
	// not decode, or has TLS settings that this version does not know. It is nil for
	// a kind that has none.
	instead func(o *schema.Object) any
	// insteadSays is the effect of the spec of instead, in words.
	insteadSays string
	// take receives the rules that changed.
	take []func([]change[T])

	readings map[schema.Key]*reading[T]
	all      *index[none, reading[T]] // in tie-break order
	checks   *query.Query[*T, *diag.Collector]
	asked    []*T // the rules whose problems were last read one by one, each once
	// The findings of all rules are divided into parts; a change affects one of
	// them.
	parts   *index[int, reading[T]]
	reports *query.Query[int, *findings]
}

const reportParts = 64

func partOf(of declared) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of.ref.Namespace + "/" + of.ref.Name))
	return int(h.Sum32() % reportParts)
}

// none is the key of a table that has a single value.
type none struct{}

// newKind returns a kind. check reports the problems of a rule that reading the
// object by itself does not show.
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

// readingOf returns the reading of an object. It is a pure function of the object
// and the settings, so it has no reader, and all models share the result.
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
	own := schema.OwnOf(o)
	out := &reading[T]{declared: declared{o.Key().Ref(), o, unknownFields(own)}, settings: m.settings}
	spec, err := o.Spec()
	if err != nil {
		err = fmt.Errorf("its spec does not decode: %w", err)
	}
	if field := out.unknownTLS(); err == nil && k.instead != nil && field != "" {
		err = fmt.Errorf("this version does not know %s, which another version stored", field)
	}
	ok := err == nil
	if ok {
		out.rule, ok = k.rule(p, out.declared, spec)
	}
	if !ok {
		message := "the object is left out, %v"
		if k.instead != nil {
			if spec := k.instead(o); spec != nil {
				out.rule, _ = k.rule(p, out.declared, spec)
				message = k.insteadSays + ": %v"
			}
		}
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.Malformed, Code: diag.PartLeftOut, Object: out.ref, Field: "spec",
			Message: fmt.Sprintf(message, err),
		})
	}
	var all diag.Collector
	known := p.problems.List()
	all.Add(own.WarningsBeside(known)...)
	all.Merge(p.problems)
	all.Add(own.ViolationsBeside(known)...)
	out.problems = all.Found()
	return out
}

// rules returns the usable rules of the kind, in tie-break order.
func (k *kind[T]) rules(rd *reader) []*T {
	var out []*T
	for _, r := range k.all.under(rd, none{}) {
		if r.rule != nil {
			out = append(out, r.rule)
		}
	}
	return out
}

// inKeyOrder is the tie-break order of Secrets and of the kinds of Pilot, except
// EgressRules.
func inKeyOrder(a, b declared) int { return mesh.CompareKeys(a.object, b.object) }

// inAgeOrder is the tie-break order of networking kinds and of EgressRules: the
// oldest first, as in Istio, unless the mesh keeps Pilot's order.
func (m *model) inAgeOrder(a, b declared) int {
	if m.pilot().AnyNamespaceRules {
		return inKeyOrder(a, b)
	}
	return cmp.Or(a.object.Meta.CreationTimestamp.Compare(b.object.Meta.CreationTimestamp.Time), inKeyOrder(a, b))
}
