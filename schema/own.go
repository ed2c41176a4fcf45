package schema

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// Own is what the text of a stored object shows to be wrong with it.
type Own struct {
	// Warnings are those that Decode has of the text, without their places.
	Warnings diag.List
	// Violations are the rules that the object breaks: see the function of that name.
	Violations diag.List
}

// OwnOf looks at the text of a stored object. One that does not decode has violations
// alone.
func OwnOf(o *Object) Own {
	found, good := o.warnings()
	if !good {
		found = o.complaints()
	}
	for i := range found {
		found[i].Object, found[i].Position = o.Key().Ref(), nil
	}
	own := Own{Warnings: found.Warnings(), Violations: found.Errors()}
	if len(own.Violations) > 0 {
		own.Warnings = append(own.Warnings, o.limits()...) // Which Decode leaves out beside errors.
	}
	return own
}

// limits is what the object says and no proxy follows.
func (o *Object) limits() diag.List {
	spec, err := o.Spec()
	if err != nil {
		return nil
	}
	list := o.Kind.beyond(spec)
	for i := range list {
		list[i].Object = o.Key().Ref()
	}
	return list
}

// Beside is all that is wrong with a stored object of which some problems are known
// from elsewhere. What a known problem tells of is told once.
func (w Own) Beside(known diag.List) diag.List {
	return slices.Concat(w.WarningsBeside(known), known, w.ViolationsBeside(known))
}

// WarningsBeside are the warnings of which no known problem tells.
func (w Own) WarningsBeside(known diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(w.Warnings), func(own diag.Problem) bool {
		return slices.ContainsFunc(known, func(p diag.Problem) bool { return tellsOf(p, own) })
	})
}

// ViolationsBeside are, as warnings, the violations of which no known problem tells.
// Whether the object multiplies to too much is left to the budget of the mesh, which is
// a setting.
func (w Own) ViolationsBeside(known diag.List) diag.List {
	var out diag.List
	for _, v := range w.Violations {
		told := v.Code == diag.OverBudget || slices.ContainsFunc(known, func(p diag.Problem) bool {
			return p.Field == v.Field || within(p.Field, v.Field) || p.Reason == diag.Malformed && within(v.Field, p.Field)
		})
		if !told {
			v.Severity, v.Reason = diag.Warning, diag.NotHonoured // It is stored, and nobody refuses it.
			v.Message += "; an older version stored this, and no new object may have it"
			out = append(out, v)
		}
	}
	return out
}

// tellsOf reports whether a problem is about what a warning is about, and takes it no
// less seriously.
func tellsOf(p, warning diag.Problem) bool {
	if !p.Unhonoured() && warning.Unhonoured() {
		return false
	}
	return p.Field == warning.Field || (p.Code == warning.Code || p.Reason == diag.Malformed) && within(warning.Field, p.Field)
}
