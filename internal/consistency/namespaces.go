package consistency

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pilot-api/pilot-api/schema"
)

// space is the sequential model of a namespace: its objects at the revision of the last
// write. It does not use the order that the store kept, so it also checks that order.
type space struct {
	revision int64
	objects  map[schema.Key]Version
}

// part is the part of an operation in one namespace.
type part struct {
	*Operation
	namespace string
	steps     []Step // Those tried here.
	refused   bool   // The last of the steps was refused.
	// turn is the revision of the write before this one. Answers contain revisions and
	// so the order of writes. The search finds the places of the reads, and whether the
	// order of writes fits the times of all operations.
	turn int64
}

func step(state, input, _ any) (bool, any) {
	now, p := state.(space), input.(*part)
	switch {
	case p.Verb == List:
		return now.listed(p), now
	case p.Verb == Get && p.Outcome == OK:
		return now.objects[p.Key] == Version{p.Key, p.Revision, p.Got}, now
	case p.Outcome != OK:
		return now.allows(p), now
	case now.revision != p.turn || p.Revision <= p.turn || !now.allows(p):
		return false, now
	}
	return true, now.after(p)
}

// allows reports whether all steps are possible, or all but the one that failed.
func (s space) allows(p *part) bool {
	for i, step := range p.steps {
		must := OK
		if p.refused && i == len(p.steps)-1 {
			must = p.Outcome
		}
		now, there := s.objects[step.Key]
		if step.upon(now, there) != must {
			return false
		}
	}
	return true
}

// after returns the namespace after all steps.
func (s space) after(p *part) space {
	next := space{p.Revision, maps.Clone(s.objects)}
	for _, step := range p.steps {
		if step.Verb == Delete {
			delete(next.objects, step.Key)
		} else {
			next.objects[step.Key] = Version{step.Key, p.Revision, step.Value}
		}
	}
	return next
}

// listed reports whether a list has all objects of the namespace and no others.
func (s space) listed(p *part) bool {
	missing := 0
	for key := range s.objects {
		if p.Scope.Contains(key) {
			missing++
		}
	}
	for _, item := range p.Items {
		if item.Key.Namespace != p.namespace {
			continue
		}
		if s.objects[item.Key] != item {
			return false
		}
		missing--
	}
	return missing == 0 && p.Revision >= s.revision
}

var model = porcupine.Model{
	Init: func() any { return space{objects: map[schema.Key]Version{}} },
	Step: step,
	Equal: func(a, b any) bool {
		return a.(space).revision == b.(space).revision && maps.Equal(a.(space).objects, b.(space).objects)
	},
}

// searchLimit bounds the search for one namespace. A search takes far less, because
// revisions leave few choices.
const searchLimit = time.Minute

// namespaces requires a linearization of the operations on each namespace.
func (c *check) namespaces(a *acts) {
	for namespace, parts := range c.parts(a) {
		takeTurns(parts)
		ops := make([]porcupine.Operation, len(parts))
		for i, p := range parts {
			ops[i] = porcupine.Operation{Input: p, Call: int64(p.Call), Return: int64(p.Return)}
		}
		switch porcupine.CheckOperationsTimeout(model, ops, searchLimit) {
		case porcupine.Illegal:
			c.violate("not linearizable", "%s: no order explains its %d operations", namespace, len(ops))
		case porcupine.Unknown:
			c.violate("undecided", "%s: no order of its %d operations was found in %s", namespace, len(ops), searchLimit)
		}
	}
}

// parts returns the linearizable operations by namespace.
func (c *check) parts(a *acts) map[string][]*part {
	all := map[string][]*part{}
	add := func(op *Operation) {
		for _, namespace := range c.touched(op) {
			all[namespace] = append(all[namespace], op.in(namespace))
		}
	}
	for i := range c.Operations {
		op := &c.Operations[i]
		acted := op.Verb.writes() && op.Outcome == OK
		if op.decided() && op.AtLeast == 0 && op.Exact == 0 && !acted {
			add(op)
		}
	}
	for _, op := range a.all {
		add(op)
	}
	return all
}

// touched returns the namespaces that an operation gives information about.
func (c *check) touched(op *Operation) (namespaces []string) {
	add := func(namespace string) {
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	for _, s := range op.tried() {
		add(s.Key.Namespace)
	}
	if op.Verb != List {
		return namespaces
	}
	for key := range c.order.byKey {
		if op.Scope.Contains(key) {
			add(key.Namespace)
		}
	}
	for _, item := range op.Items {
		add(item.Key.Namespace)
	}
	return namespaces
}

func (o *Operation) in(namespace string) *part {
	p := &part{Operation: o, namespace: namespace}
	for _, s := range o.tried() {
		if s.Key.Namespace == namespace {
			p.steps = append(p.steps, s)
		}
	}
	p.refused = o.Outcome != OK && o.failing().Key.Namespace == namespace
	return p
}

// takeTurns puts the writes into the order of their revisions.
func takeTurns(parts []*part) {
	writes := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return !p.Verb.writes() || p.Outcome != OK })
	slices.SortFunc(writes, func(a, b *part) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := 1; i < len(writes); i++ {
		writes[i].turn = writes[i-1].Revision
	}
}
