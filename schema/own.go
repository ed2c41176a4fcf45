package schema

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// Own holds the problems that the text of a stored object alone shows.
type Own struct {
	// Warnings are the warnings of Decode, without positions.
	Warnings diag.List
	// Violations are the rules that the object breaks: see the function Violations.
	Violations diag.List
}

// OwnOf checks the text of a stored object. A text that does not decode has only
// violations. The result does not depend on the time: certificates that expire are not in
// it.
func OwnOf(o *Object) Own {
	found, good := o.warnings()
	if !good {
		found = o.complaints()
	}
	for i := range found {
		found[i].Object, found[i].Position = o.Key().Ref(), nil
	}
	// The caller keeps the result, and certificates expire meanwhile (ExpiryProblems).
	found = slices.DeleteFunc(found, dependsOnTime)
	own := Own{Warnings: found.Warnings(), Violations: found.Errors()}
	if len(own.Violations) > 0 {
		own.Warnings = append(own.Warnings, o.limits()...) // Decode leaves them out if there are errors.
	}
	return own
}

// limits returns what the object says and no proxy follows.
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

// Beside returns all problems of a stored object, with problems known from
// elsewhere in the middle. It reports nothing twice.
func (w Own) Beside(known diag.List) diag.List {
	return slices.Concat(w.WarningsBeside(known), known, w.ViolationsBeside(known))
}

// WarningsBeside returns the warnings that no known problem covers.
func (w Own) WarningsBeside(known diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(w.Warnings), func(own diag.Problem) bool {
		return slices.ContainsFunc(known, func(p diag.Problem) bool { return tellsOf(p, own) })
	})
}

// ViolationsBeside returns, as warnings, the violations that no known problem
// covers. It omits that the object multiplies to too much, because that depends on
// the budget, a mesh setting.
func (w Own) ViolationsBeside(known diag.List) diag.List {
	var out diag.List
	for _, v := range w.Violations {
		isKnown := v.Code == diag.OverBudget || slices.ContainsFunc(known, func(p diag.Problem) bool {
			return p.Field == v.Field || within(p.Field, v.Field) || p.Reason == diag.Malformed && within(v.Field, p.Field)
		})
		if !isKnown {
			v.Severity, v.Reason = diag.Warning, diag.NotHonoured // It is stored, and is not rejected.
			v.Message += "; an older version stored this, and no new object may have it"
			out = append(out, v)
		}
	}
	return out
}

// tellsOf reports whether a problem covers a warning, and is at least as serious.
func tellsOf(p, warning diag.Problem) bool {
	if !p.Unhonoured() && warning.Unhonoured() {
		return false
	}
	return p.Field == warning.Field || (p.Code == warning.Code || p.Reason == diag.Malformed) && within(warning.Field, p.Field)
}
