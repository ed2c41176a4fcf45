package main

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// precondition is what a verb asks of its objects beside that each is a good one: it
// returns what does not meet it.
type precondition func([]manifest) diag.List

// repeated finds objects that are given twice: an error within a file. Among
// alternatives in a folder it may be meant, and the verb says what it is then.
func repeated(elsewhere diag.Severity) precondition {
	return func(list []manifest) diag.List {
		var out diag.List
		first := map[schema.Key]schema.Document{}
		for _, m := range list {
			if other, taken := first[m.Key()]; taken && m.Meta.Name != "" {
				severity := elsewhere
				if other.File == m.doc.File && other.Line != m.doc.Line {
					severity = diag.Error
				}
				out = append(out, m.problem(severity, diag.FieldDuplicate, "metadata.name",
					fmt.Sprintf("the same object is already in %s", place(other))))
			}
			first[m.Key()] = m.doc
		}
		return out
	}
}

// versioned finds copies of what is stored: a new object has no version yet.
func versioned(list []manifest) diag.List {
	var out diag.List
	for _, m := range list {
		if m.Meta.ResourceVersion != "" {
			out = append(out, m.problem(diag.Error, diag.FieldForbidden, "metadata.resourceVersion",
				"must be left out to create, as it is that of a stored object; to change that one use 'istioctl replace' or 'istioctl apply'"))
		}
	}
	return out
}

// named refuses objects that have only a generateName: they can be created, but
// nothing that exists can be meant by them.
func named(verb string) precondition {
	return func(list []manifest) diag.List {
		var out diag.List
		for _, m := range list {
			if m.Meta.Name == "" {
				out = append(out, m.problem(diag.Error, diag.FieldRequired, "metadata.name",
					fmt.Sprintf("is required to %s (generateName is for create)", verb)))
			}
		}
		return out
	}
}
