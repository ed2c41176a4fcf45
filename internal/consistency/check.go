package consistency

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// Check returns every violation that it finds, none for a history that the contract
// allows.
func (h *History) Check() []Violation {
	c := &check{History: h, order: newOrder(h.Changes), clock: newClock(h)}
	c.found = c.order.sound()
	acts := c.acted()
	c.claims(acts)
	for _, op := range acts.all {
		c.happened(op)
	}
	for i := range h.Operations {
		c.operation(&h.Operations[i])
	}
	c.namespaces(acts)
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
	}
}

// negative requires that an object was in a state that fits the answer at some time of
// the request.
func (c *check) negative(op *Operation) {
	low, high := c.window(op)
	failing := op.failing()
	if !c.order.ever(failing.Key, low, high, func(last Change) bool {
		return failing.upon(last.Version, present(last)) == op.Outcome
	}) {
		last, _ := c.order.at(failing.Key, low)
		c.violate("untrue refusal", "%s: from revision %d to %d it was never so; at first there was %s", op, low, high, last)
	}
}

// get requires a version that was current at some time of the request.
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

// list requires the exact state at the list's revision.
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

// gone requires that more changes than are kept have come since.
func (c *check) gone(op *Operation) {
	if since, honest := c.forgotten(op.Exact, op.Return); !honest {
		c.violate("untrue refusal", "%s: only %d changes came since, and %d are kept", op, since, c.Kept)
	}
}

// forgotten reports whether the changes after a revision may be gone at a time, and the
// maximum number of them.
func (c *check) forgotten(revision int64, at time.Duration) (since int, may bool) {
	for _, compaction := range c.Compactions {
		if compaction.At <= at && revision < compaction.Revision {
			return 0, true
		}
	}
	since = len(c.order.within(store.Scope{}, revision, c.clock.ceiling(at)))
	return since, since >= c.Kept
}

// window returns the revisions that an operation may have seen.
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

// Rules counts violations by rule, as in "lost event 3", sorted by name.
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
