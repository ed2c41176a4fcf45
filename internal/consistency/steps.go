package consistency

import (
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
)

// Step is the effect of an operation on one object. A transaction has several.
type Step struct {
	Verb   Verb
	Key    schema.Key
	Value  string // The value to store; empty for a delete.
	Expect int64  // The resourceVersion that it depends on, 0 for none.
}

func (s Step) String() string {
	text := fmt.Sprintf("%s %s", s.Verb, s.Key)
	if s.Value != "" {
		text += fmt.Sprintf(" value %q", s.Value)
	}
	if s.Expect != 0 {
		text += fmt.Sprintf(" if at %d", s.Expect)
	}
	return text
}

// upon returns the required outcome of a step for a state of its object.
func (s Step) upon(now Version, there bool) Outcome {
	switch {
	case s.Verb == Create && there:
		return Exists
	case s.Verb == Create || s.Verb == Apply && !there:
		return OK
	case !there:
		return NotFound
	case s.Expect != 0 && s.Expect != now.Revision:
		return Conflict
	}
	return OK
}

// Does returns the steps of an operation. A list has none.
func (o *Operation) Does() []Step {
	switch o.Verb {
	case List:
		return nil
	case Txn:
		return o.Steps
	}
	return []Step{{o.Verb, o.Key, o.Value, o.Expect}}
}

// failing returns the step that an operation was refused for.
func (o *Operation) failing() Step { return o.Does()[o.Failed] }

// tried returns the steps about which an answer gives information. The steps after a
// refused one may have been possible or not.
func (o *Operation) tried() []Step {
	if o.Verb == Txn && o.Outcome != OK {
		return o.Steps[:o.Failed+1]
	}
	return o.Does()
}

// decided reports whether an answer gives information about the objects.
func (o *Operation) decided() bool {
	switch o.Outcome {
	case OK, NotFound, Exists, Conflict:
		return true
	}
	return false
}
