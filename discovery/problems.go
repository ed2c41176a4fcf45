package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// refusal is a problem of the whole configuration, of no single object.
func refusal(message string) diag.Problem {
	return diag.Problem{Severity: diag.Error, Reason: diag.NotHonoured, Message: message}
}

// maxProblems bounds what is told of a configuration, beside the bound that
// each view has for each object. Nobody reads as much, and an answer of it has some megabytes.
const maxProblems = 10_000

// readable orders problems by object, tells each once, for views find the same,
// and no more of them than there is a bound for.
func readable(all diag.List) diag.List {
	var out diag.List
	seen := make(map[diag.Problem]bool, len(all))
	for _, p := range all {
		if p.Position = nil; !seen[p] { // Generated configuration has none.
			seen[p] = true
			out = append(out, p)
		}
	}
	slices.SortFunc(out, compareProblems)
	if left := len(out) - maxProblems; left > 0 {
		out = append(out[:maxProblems:maxProblems], refusal(fmt.Sprintf("%d more problems are not listed", left)))
	}
	return out
}

func compareProblems(a, b diag.Problem) int {
	for _, c := range []struct{ a, b string }{
		{a.Object.Kind, b.Object.Kind},
		{a.Object.Namespace, b.Object.Namespace},
		{a.Object.Name, b.Object.Name},
		{a.Field, b.Field},
		{string(a.Severity), string(b.Severity)},
		{string(a.Reason), string(b.Reason)},
		{a.Message, b.Message},
		{a.Value, b.Value},
	} {
		if order := strings.Compare(c.a, c.b); order != 0 {
			return order
		}
	}
	return 0
}
