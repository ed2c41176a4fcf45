package consistency

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// register is the sequential object: there or not, at a revision that only
// grows. It knows nothing of the order that the store kept, so it judges that
// order too.
type register struct {
	revision int64
	value    string
	there    bool
}

func step(state, input, output any) (bool, any) {
	now, op := state.(register), input.(*Operation)
	did := output.(*Operation)
	if did.Outcome != OK {
		return refusal(now, op, did.Outcome), now
	}
	next := register{did.Revision, op.Value, true}
	expected := op.Expect == 0 || op.Expect == now.revision
	switch op.Verb {
	case Get:
		return now == register{did.Revision, did.Got, true}, now
	case Create:
		return !now.there && did.Revision > now.revision, next
	case Delete:
		return now.there && expected && did.Revision > now.revision, register{revision: did.Revision}
	default:
		return now.there && expected && did.Revision > now.revision, next
	}
}

func refusal(now register, op *Operation, outcome Outcome) bool {
	switch outcome {
	case NotFound:
		return !now.there
	case Exists:
		return now.there
	default:
		return op.Expect != 0 && now.there && now.revision != op.Expect
	}
}

var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: step,
	DescribeOperation: func(_, output any) string {
		return output.(*Operation).String()
	},
}

// searchLimit bounds the search for one object. Revisions leave few choices:
// it takes milliseconds.
const searchLimit = 20 * time.Second

// objects wants a linearization of the operations on each object.
func (c *check) objects() {
	for key, ops := range c.perObject() {
		switch porcupine.CheckOperationsTimeout(model, ops, searchLimit) {
		case porcupine.Illegal:
			c.violate("not linearizable", "%s: no order explains its %d operations", key, len(ops))
		case porcupine.Unknown:
			c.violate("undecided", "%s: no order of its %d operations was found in %s", key, len(ops), searchLimit)
		}
	}
}

func (c *check) perObject() map[schema.Key][]porcupine.Operation {
	all := map[schema.Key][]porcupine.Operation{}
	add := func(op *Operation, until int64) {
		all[op.Key] = append(all[op.Key], porcupine.Operation{Input: op, Output: op, Call: int64(op.Call), Return: until})
	}
	var unsure []*Operation
	for i := range c.Operations {
		op := &c.Operations[i]
		switch {
		case op.Outcome == Unknown && op.Verb.writes():
			unsure = append(unsure, op)
		case op.Outcome == Unknown, op.Outcome == Refused, op.Outcome == Unexpected, op.Outcome == Gone,
			op.AtLeast != 0, op.Exact != 0:
		case op.Verb == List:
			for _, get := range asGets(op, c.order) {
				add(get, int64(op.Return))
			}
		default:
			add(op, int64(op.Return))
		}
	}
	for _, op := range c.resolve(unsure) {
		add(op, math.MaxInt64)
	}
	return all
}

// asGets is a list as reads of each object in it and of each that is not.
func asGets(list *Operation, o *order) []*Operation {
	var gets []*Operation
	seen := map[schema.Key]bool{}
	for _, item := range list.Items {
		get := *list
		get.Verb, get.Key, get.Revision, get.Got = Get, item.Key, item.Revision, item.Value
		gets = append(gets, &get)
		seen[item.Key] = true
	}
	for key := range o.byKey {
		if list.Scope.Contains(key) && !seen[key] {
			get := *list
			get.Verb, get.Key, get.Outcome = Get, key, NotFound
			gets = append(gets, &get)
		}
	}
	return gets
}

// resolve are the writes of unknown outcome that the store's order says
// happened; the others never did. Which of several unknown deletes of an
// object made a deletion is not known: the one that came first allows most.
func (c *check) resolve(unsure []*Operation) (happened []*Operation) {
	slices.SortFunc(unsure, func(a, b *Operation) int { return int(a.Call - b.Call) })
	acknowledged := map[Version]bool{}
	for _, op := range c.Operations {
		if op.Verb == Delete && op.Outcome == OK {
			acknowledged[Version{Key: op.Key, Revision: op.Revision}] = true
		}
	}
	for _, change := range c.order.changes {
		if acknowledged[Version{Key: change.Key, Revision: change.Revision}] {
			continue
		}
		i := slices.IndexFunc(unsure, func(op *Operation) bool {
			if change.Type == store.Deleted {
				return op.Verb == Delete && op.Key == change.Key
			}
			return op.Verb != Delete && op.Value == change.Value
		})
		if i < 0 {
			continue
		}
		op := *unsure[i]
		unsure = slices.Delete(unsure, i, i+1)
		op.Outcome, op.Revision, op.Detail = OK, change.Revision, fmt.Sprintf(" (found at %d)", change.Revision)
		if op.Verb == Delete {
			op.Expect = 0 // Another one may have done it.
		}
		happened = append(happened, &op)
	}
	return happened
}
