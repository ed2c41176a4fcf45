package consistency

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// mark identifies a change by the value that it wrote, which is unique, or by the
// revision of a deletion.
type mark struct {
	key      schema.Key
	value    string
	revision int64
}

func (c Change) mark() mark {
	if c.Type == store.Deleted {
		return mark{key: c.Key, revision: c.Revision}
	}
	return mark{key: c.Key, value: c.Value}
}

// mark returns the mark of the change that a step makes at a revision.
func (s Step) mark(revision int64) mark {
	if s.Verb == Delete {
		return mark{key: s.Key, revision: revision}
	}
	return mark{key: s.Key, value: s.Value}
}

// acts are the writes that happened: the acknowledged ones, and those of unknown outcome
// that are in the store's order. The others never happened.
type acts struct {
	all  []*Operation
	made map[mark]*Operation
}

func (a *acts) add(op *Operation) {
	a.all = append(a.all, op)
	for _, s := range op.Does() {
		a.made[s.mark(op.Revision)] = op
	}
}

func (c *check) acted() *acts {
	a := &acts{made: map[mark]*Operation{}}
	var unsure []*Operation
	for i := range c.Operations {
		op := &c.Operations[i]
		switch {
		case !op.Verb.writes():
		case op.Outcome == OK:
			a.add(op)
		case op.Outcome == Unknown:
			unsure = append(unsure, op)
		}
	}
	// It is not known which of several unknown deletes of an object made a deletion.
	// The first one allows the most.
	slices.SortStableFunc(unsure, func(a, b *Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, change := range c.order.changes {
		if a.made[change.mark()] != nil {
			continue
		}
		if i := slices.IndexFunc(unsure, func(op *Operation) bool { return op.mayHaveMade(change) }); i >= 0 {
			a.add(c.foundAt(unsure[i], change.Revision))
			unsure = slices.Delete(unsure, i, i+1)
		}
	}
	return a
}

// mayHaveMade reports whether a write of unknown outcome may have made a change. The
// values of a transaction identify it.
func (o *Operation) mayHaveMade(change Change) bool {
	if change.Type == store.Deleted {
		return o.Verb == Delete && o.Key == change.Key
	}
	return slices.ContainsFunc(o.Does(), func(s Step) bool { return s.mark(change.Revision) == change.mark() })
}

// foundAt returns a write of unknown outcome that is in the store's order. It ended
// before any client received its revision or a later one.
func (c *check) foundAt(unsure *Operation, revision int64) *Operation {
	op := *unsure
	op.Outcome, op.Revision, op.Detail = OK, revision, fmt.Sprintf(" (of unknown outcome; found at %d)", revision)
	op.Return = max(op.Call, c.clock.toldOf(revision))
	if op.Verb == Delete {
		op.Expect = 0 // Another operation may have done it.
	}
	return &op
}

// claims requires that every change was requested by one write that had begun, and that
// no two writes share a revision.
func (c *check) claims(a *acts) {
	asked := map[mark]*Operation{} // Whatever its outcome.
	for i := range c.Operations {
		if op := &c.Operations[i]; op.Verb.writes() {
			for _, s := range op.Does() {
				asked[s.mark(op.Revision)] = op
			}
		}
	}
	times := map[mark]int{}
	at := map[int64]*Operation{}
	for _, change := range c.order.changes {
		m := change.mark()
		op, other := a.made[m], at[change.Revision]
		switch times[m]++; {
		case op == nil && asked[m] != nil:
			c.violate("refused write", "%s happened all the same: %s", asked[m], change)
		case op == nil:
			c.violate("unasked", "nobody asked for %s", change)
		case times[m] > 1:
			c.violate("repeated write", "%s happened more than once: %s", op, change)
		case other != nil && other != op:
			c.violate("order", "%s and %s share revision %d", other, op, change.Revision)
		default:
			at[change.Revision] = op
			c.inTime(op, change)
		}
	}
}

// inTime requires that a write came after everything that was received before it began.
func (c *check) inTime(op *Operation, change Change) {
	if floor := c.clock.floor(op.Call); change.Revision <= floor {
		c.violate("order", "%s became %s, and revision %d had already been told", op, change, floor)
	}
}

// happened requires that a write is where its answer or the order says, complete, and on
// the state that it depends on.
func (c *check) happened(op *Operation) {
	steps := op.Does()
	missing := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		change, ok := c.order.change(s.Key, op.Revision)
		return ok && change.mark() == s.mark(op.Revision)
	})
	switch {
	case len(missing) == len(steps):
		c.violate("lost write", "%s: at this revision there is nothing of it", op)
		return
	case len(missing) > 0:
		c.violate("half transaction", "%s: at this revision there is no %v", op, missing)
	}
	for _, s := range steps {
		before, there := c.order.before(s.Key, op.Revision)
		if must := s.upon(before, there); must != OK {
			c.violate("write", "%s: its %s came upon %s, which means %q", op, s, before, must)
		}
	}
}
