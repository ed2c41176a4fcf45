package schema

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// An object that an older version stored may break a rule of today. It is served,
// with a problem. Updates are validated as in Kubernetes: a rule that the stored
// object already breaks in the same way does not reject the update. So the object
// can be labelled, marked for deletion and mended field by field.

// Violations returns the rules that an object breaks, which are the errors of
// Validate. An object that this version wrote has none.
func Violations(o *Object) diag.List {
	found := Validate(o).Errors()
	for i := range found {
		found[i].Object, found[i].Position = o.Key().Ref(), nil
	}
	return found
}

// Unchanged reports whether an update breaks only rules that the stored object
// breaks in the same place and way. list has the problems of the update, known
// those of the stored object.
func Unchanged(list, known diag.List) bool {
	if cut(list) || cut(known) {
		return false // The other problems are not known.
	}
	return !slices.ContainsFunc(list.Errors(), func(p diag.Problem) bool {
		return !slices.ContainsFunc(known, func(k diag.Problem) bool {
			return k.Field == p.Field && k.Reason == p.Reason && k.Value == p.Value && k.Message == p.Message
		})
	})
}

func cut(list diag.List) bool {
	return slices.ContainsFunc(list, func(p diag.Problem) bool { return p.Message == moreErrors })
}

// asKnown returns the same problems as warnings.
func asKnown(list diag.List) diag.List {
	list = slices.Clone(list)
	for i, p := range list {
		if p.Severity == diag.Error {
			list[i].Severity = diag.Warning
			list[i].Message = strings.TrimSuffix(p.Message, ".") + "; the stored object has this already, so it stays until it is fixed"
		}
	}
	return list
}
