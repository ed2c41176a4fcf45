package main

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// precondition is a verb's requirement on its objects, besides validity. It returns a
// problem for each violation.
type precondition func([]manifest) diag.List

// repeated finds objects that are given twice. Within one file that is an error. In a
// folder of alternatives it may be intended, so the verb sets the severity.
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

// versioned finds objects with a version: they are copies of stored ones, because a new
// object has no version yet.
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

// named refuses objects that have only a generateName. They can be created, but do not
// identify an existing object.
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
