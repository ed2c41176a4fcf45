package discovery

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// refusal is a problem of the whole configuration, of no single object.
func refusal(message string) diag.Problem {
	return diag.Problem{Severity: diag.Error, Reason: diag.NotHonoured, Message: message}
}

// sorted orders by object and drops repetitions: views find the same problems.
func sorted(all diag.List) diag.List {
	slices.SortFunc(all, compareProblems)
	return slices.CompactFunc(all, func(a, b diag.Problem) bool { return compareProblems(a, b) == 0 })
}

// compareProblems looks at everything but positions, which generated
// configuration does not have.
func compareProblems(a, b diag.Problem) int {
	return cmp.Or(
		cmp.Compare(a.Object.Kind, b.Object.Kind),
		cmp.Compare(a.Object.Namespace, b.Object.Namespace),
		cmp.Compare(a.Object.Name, b.Object.Name),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Value, b.Value),
	)
}
