package store

import (
	"iter"

	"github.com/pilot-api/pilot-api/schema"
)

// Revisions returns the changes of a batch as batches of one revision each, in order.
// They share the events of the batch.
func (b Batch) Revisions() iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		for rest := b.Events; len(rest) > 0; {
			revision := rest[0].Object.Revision()
			n := 1
			for n < len(rest) && rest[n].Object.Revision() == revision {
				n++
			}
			if !yield(Batch{Revision: revision, Events: rest[:n:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Size returns the length of the batch's objects as JSON, in bytes. In memory they take
// about twice as much.
func (b Batch) Size() int {
	size := 0
	for _, ev := range b.Events {
		size += sizeOf(ev.Object)
		if ev.Previous != nil {
			size += sizeOf(ev.Previous)
		}
	}
	if b.Statuses != nil {
		for _, one := range b.Statuses.Moved {
			size += statusOverhead + len(one.JSON)
		}
	}
	return size
}

// statusOverhead is about half of the memory that an object with a status takes beside its
// text, which it shares, and its status.
const statusOverhead = 300

// sizeOf returns the size of an object in a batch.
func sizeOf(o *schema.Object) int {
	if s := o.StatusText(); s != nil {
		return statusOverhead + len(s.JSON)
	}
	return len(o.JSON())
}

// In returns the part of the batch that is in scope.
func (b Batch) In(scope Scope) Batch {
	if scope == (Scope{}) {
		return b
	}
	in := Batch{Revision: b.Revision}
	for _, ev := range b.Events {
		if scope.Contains(ev.Object.Key()) {
			in.Events = append(in.Events, ev)
		}
	}
	for _, r := range b.Readings {
		if r.Key != (schema.Key{}) && scope.Contains(r.Key) {
			in.Readings = append(in.Readings, r)
		}
	}
	return in
}
