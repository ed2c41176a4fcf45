package consistency

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Check returns every violation that it finds, none for a history that the
// contract allows.
func (h *History) Check() []Violation {
	c := &check{History: h, order: newOrder(h.Changes), clock: newClock(h)}
	c.found = c.order.sound()
	c.claims()
	for i := range h.Operations {
		c.operation(&h.Operations[i])
	}
	c.objects()
	for _, w := range h.Watches {
		c.watch(w)
	}
	return c.found
}

type check struct {
	*History
	order *order
	clock *clock
	found []Violation
}

func (c *check) violate(rule, format string, args ...any) {
	c.found = append(c.found, Violation{rule, fmt.Sprintf(format, args...)})
}

// claims wants that every change was asked for, by one write that had begun.
func (c *check) claims() {
	written := map[string]*Operation{}
	deleted := map[Version]bool{}
	unsure := map[schema.Key]int{}
	for i := range c.Operations {
		op := &c.Operations[i]
		switch {
		case op.Verb == Delete && op.Outcome == OK:
			deleted[Version{Key: op.Key, Revision: op.Revision}] = true
		case op.Verb == Delete && op.Outcome == Unknown:
			unsure[op.Key]++
		case op.Verb.writes():
			written[op.Value] = op
		}
	}
	times := map[string]int{}
	for _, change := range c.order.changes {
		if change.Type == store.Deleted {
			if !deleted[Version{Key: change.Key, Revision: change.Revision}] {
				if unsure[change.Key]--; unsure[change.Key] < 0 {
					c.violate("unasked", "nobody asked for %s", change)
				}
			}
			continue
		}
		op := written[change.Value]
		switch times[change.Value]++; {
		case op == nil || op.Key != change.Key:
			c.violate("unasked", "nobody asked for %s", change)
		case op.Outcome != OK && op.Outcome != Unknown:
			c.violate("refused write", "%s happened all the same: %s", op, change)
		case times[change.Value] > 1:
			c.violate("repeated write", "%s happened more than once: %s", op, change)
		default:
			c.inTime(op, change)
		}
	}
}

// inTime wants that a write came after all that was told before it began.
func (c *check) inTime(op *Operation, change Change) {
	if floor := c.clock.floor(op.Call); change.Revision <= floor {
		c.violate("order", "%s became %s, and revision %d had already been told", op, change, floor)
	}
}

func (c *check) operation(op *Operation) {
	switch {
	case op.Outcome == Unknown || op.Outcome == Refused:
	case op.Outcome == Unexpected:
		c.violate("unexpected answer", "%s", op)
	case op.Outcome == Gone:
		c.gone(op)
	case op.Verb == List:
		c.list(op)
	case op.Outcome != OK:
		c.negative(op)
	case op.Verb == Get:
		c.get(op)
	default:
		c.acknowledged(op)
	}
}

// acknowledged wants a write where the answer says that it is, on the state
// that it depends on.
func (c *check) acknowledged(op *Operation) {
	change, ok := c.order.change(op.Key, op.Revision)
	if !ok || op.Verb != Delete && change.Value != op.Value || present(change) == (op.Verb == Delete) {
		c.violate("lost write", "%s was acknowledged; at this revision there is %s", op, change)
		return
	}
	if op.Verb == Delete {
		c.inTime(op, change)
	}
	before, there := c.order.before(op.Key, op.Revision)
	if there == (op.Verb == Create) {
		c.violate("write", "%s came upon %s", op, before)
	}
	if op.Expect != 0 && before.Revision != op.Expect {
		c.violate("write", "%s depends on revision %d and came upon %s", op, op.Expect, before)
	}
}

// negative wants that an object was, at some time of the request, in a state
// that the answer suits.
func (c *check) negative(op *Operation) {
	low, high := c.window(op)
	if !c.order.ever(op.Key, low, high, func(last Change) bool {
		switch op.Outcome {
		case NotFound:
			return !present(last)
		case Exists:
			return present(last)
		default:
			return op.Expect != 0 && present(last) && last.Revision != op.Expect
		}
	}) {
		last, _ := c.order.at(op.Key, low)
		c.violate("untrue refusal", "%s: from revision %d to %d it was never so; at first there was %s", op, low, high, last)
	}
}

// get wants a version that was the present one at some time of the request.
func (c *check) get(op *Operation) {
	change, ok := c.order.change(op.Key, op.Revision)
	if !ok || !present(change) || change.Value != op.Got {
		c.violate("untrue read", "%s: there never was such a version; at this revision there is %s", op, change)
		return
	}
	low, high := c.window(op)
	if !c.order.ever(op.Key, low, high, func(last Change) bool { return last.Revision == op.Revision }) {
		last, _ := c.order.at(op.Key, low)
		c.violate("stale read", "%s: at revision %d there was already %s", op, low, last)
	}
}

// list wants the very state of the revision that the list names.
func (c *check) list(op *Operation) {
	if op.Exact != 0 && op.Revision != op.Exact {
		c.violate("list of another revision", "%s", op)
	}
	if low, high := c.window(op); op.Revision < low || op.Revision > high {
		c.violate("stale list", "%s: it must be of a revision from %d to %d", op, low, high)
	}
	want := c.order.state(op.Scope, op.Revision)
	for _, item := range op.Items {
		if have, ok := want[item.Key]; have != item {
			c.violate("list that was no state", "%s: it has %s; at this revision there is %s (%t)", op, item, have, ok)
		}
		delete(want, item.Key)
	}
	for _, missing := range want {
		c.violate("list that was no state", "%s: it lacks %s", op, missing)
	}
}

// gone wants that more changes than are kept have come since.
func (c *check) gone(op *Operation) {
	if since, honest := c.forgotten(op.Exact, op.Return); !honest {
		c.violate("untrue refusal", "%s: only %d changes came since, and %d are kept", op, since, c.Kept)
	}
}

// forgotten reports whether what came after a revision may be gone at a time,
// and how much that is at most.
func (c *check) forgotten(revision int64, at time.Duration) (since int, may bool) {
	for _, compaction := range c.Compactions {
		if compaction.At <= at && revision < compaction.Revision {
			return 0, true
		}
	}
	since = len(c.order.within(store.Scope{}, revision, c.clock.ceiling(at)))
	return since, since >= c.Kept
}

// window is the revisions that an operation may have seen.
func (c *check) window(op *Operation) (low, high int64) {
	switch {
	case op.AtLeast == store.Any || op.Exact != 0:
	case op.AtLeast > 0:
		low = op.AtLeast
	default:
		low = c.clock.floor(op.Call)
	}
	return low, c.clock.ceiling(op.Return)
}

// Rules counts violations by rule, as "lost event 3", in the order of names.
func Rules(found []Violation) []string {
	count := map[string]int{}
	for _, v := range found {
		count[v.Rule]++
	}
	var text []string
	for rule, n := range count {
		text = append(text, fmt.Sprintf("%s %d", rule, n))
	}
	slices.Sort(text)
	return text
}
