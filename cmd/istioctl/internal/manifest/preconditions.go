package manifest

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Precondition is a verb's requirement on its objects, besides validity. It returns a
// problem for each violation.
type Precondition func([]Manifest) diag.List

// Repeated finds objects that are given twice. Within one file that is an error. In a
// folder of alternatives it may be intended, so the verb sets the severity.
func Repeated(elsewhere diag.Severity) Precondition {
	return func(list []Manifest) diag.List {
		var out diag.List
		first := map[schema.Key]schema.Document{}
		for _, m := range list {
			if other, taken := first[m.Key()]; taken && m.Meta.Name != "" {
				severity := elsewhere
				if other.File == m.doc.File && other.Line != m.doc.Line {
					severity = diag.Error
				}
				message := fmt.Sprintf("the same object is already in %s", place(other))
				if *place(other) == *m.Place() {
					message = fmt.Sprintf("the file is named twice: -f reads %s once more for the same object", place(other))
				}
				out = append(out, m.Problem(severity, diag.FieldDuplicate, "metadata.name", message))
			}
			first[m.Key()] = m.doc
		}
		return out
	}
}

// Versioned finds objects with a version: they are copies of stored ones, because a new
// object has no version yet.
func Versioned(list []Manifest) diag.List {
	var out diag.List
	for _, m := range list {
		if m.Meta.ResourceVersion != "" {
			out = append(out, m.Problem(diag.Error, diag.FieldForbidden, "metadata.resourceVersion",
				"must be left out to create, as it is that of a stored object; to change that one use 'istioctl replace' or 'istioctl apply'"))
		}
	}
	return out
}

// Named refuses objects that have only a generateName. They can be created, but do not
// identify an existing object.
func Named(verb string) Precondition {
	return func(list []Manifest) diag.List {
		var out diag.List
		for _, m := range list {
			if m.Meta.Name == "" {
				out = append(out, m.Problem(diag.Error, diag.FieldRequired, "metadata.name",
					fmt.Sprintf("is required to %s (generateName is for create)", verb)))
			}
		}
		return out
	}
}
