package consistency

import (
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
)

// Step is what an operation does to one object; a transaction has several.
type Step struct {
	Verb   Verb
	Key    schema.Key
	Value  string // What it wants to store; nothing for a delete.
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

// upon is what must come of a step upon one state of its object.
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

// Does are the steps of an operation about objects; a list has none.
func (o *Operation) Does() []Step {
	switch o.Verb {
	case List:
		return nil
	case Txn:
		return o.Steps
	}
	return []Step{{o.Verb, o.Key, o.Value, o.Expect}}
}

// failing is the step that an operation was refused for.
func (o *Operation) failing() Step { return o.Does()[o.Failed] }

// tried are the steps that an answer tells something of: those after the one
// that a transaction was refused for may have been possible or not.
func (o *Operation) tried() []Step {
	if o.Verb == Txn && o.Outcome != OK {
		return o.Steps[:o.Failed+1]
	}
	return o.Does()
}

// decided reports whether an answer tells anything of the objects.
func (o *Operation) decided() bool {
	switch o.Outcome {
	case OK, NotFound, Exists, Conflict:
		return true
	}
	return false
}
