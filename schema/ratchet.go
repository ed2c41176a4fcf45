package schema

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// An object that an older version stored may break a rule of today. It is served,
// with a problem. An update of it is judged as Kubernetes does it: what the stored
// object breaks already, in the same way, does not refuse the update, so that such
// an object can be labelled, marked for deletion and mended field by field.

// Violations are the rules that an object breaks: what Validate would refuse it
// for. It has none that was written by this version.
func Violations(o *Object) diag.List {
	found := Validate(o).Errors()
	for i := range found {
		found[i].Object, found[i].Position = o.Key().Ref(), nil
	}
	return found
}

// Unchanged reports whether an update breaks no rule but those that the stored
// object breaks in the same place and way. The list is of what the update breaks,
// known that of the stored object.
func Unchanged(list, known diag.List) bool {
	if cut(list) || cut(known) {
		return false // Nobody knows what else there is.
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

// asKnown are the same problems as warnings.
func asKnown(list diag.List) diag.List {
	list = slices.Clone(list)
	for i, p := range list {
		if p.Severity == diag.Error {
			list[i].Severity = diag.Warning
			list[i].Message = strings.TrimSuffix(p.Message, ".") + "; the stored object has this already, so it stays until it is mended"
		}
	}
	return list
}
