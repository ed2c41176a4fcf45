package feedback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// NewRefusalProblem returns a problem of the whole configuration, of no single object.
func NewRefusalProblem(code diag.Code, message string) diag.Problem {
	return diag.Problem{Severity: diag.Error, Reason: diag.NotHonoured, Code: code, Message: message}
}

// Tally is the problems of all parts of the configuration. Many views have the same
// problem; a Tally has it once. It follows every change, so that a report or a count of
// the problems does not go through all views.
type Tally struct {
	parts  map[string]diag.List
	times  map[diag.Problem]int
	sorted diag.List // nil after a change
}

// Put sets what a part has, in place of what it had.
func (t *Tally) Put(part string, problems diag.List) {
	before := t.parts[part]
	if SameList(before, problems) {
		return
	}
	if t.parts == nil {
		t.parts, t.times = map[string]diag.List{}, map[diag.Problem]int{}
	}
	t.sorted = nil
	old, new := differing(before, problems)
	for _, p := range new {
		t.times[Unplaced(p)]++
	}
	for _, p := range old {
		if p = Unplaced(p); t.times[p] == 1 {
			delete(t.times, p)
		} else {
			t.times[p]--
		}
	}
	if t.parts[part] = problems; len(problems) == 0 {
		delete(t.parts, part)
	}
}

// differing is what is left of two lists without what both begin and end with:
// of lists by object, a change of one object concerns little else.
func differing(a, b diag.List) (diag.List, diag.List) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// SameList looks at the problems only where the lists are not one.
func SameList(a, b diag.List) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// Unplaced is the problem without a position: generated configuration has none.
func Unplaced(p diag.Problem) diag.Problem {
	p.Position = nil
	return p
}

func (t *Tally) Len() int { return len(t.times) }

// List is all of them by object. It is shared.
func (t *Tally) List() diag.List {
	if t.sorted == nil {
		t.sorted = make(diag.List, 0, len(t.times))
		for p := range t.times {
			t.sorted = append(t.sorted, p)
		}
		slices.SortFunc(t.sorted, CompareProblems)
	}
	return t.sorted
}

// MaxProblems bounds the problems that are listed of a configuration, beside the bound that
// each view has for each object. Nobody reads as much, and an answer of it has some megabytes.
const MaxProblems = 10_000

// Readable is two lists, of which the first is sorted, in one, and no more of
// them than there is a bound for.
func Readable(sorted, more diag.List) diag.List {
	out := slices.Clone(sorted)
	if len(more) > 0 {
		out = append(out, more...)
		slices.SortFunc(out, CompareProblems)
	}
	if left := len(out) - MaxProblems; left > 0 {
		out = append(out[:MaxProblems:MaxProblems], NewRefusalProblem("", fmt.Sprintf("%d more problems are not listed", left)))
	}
	return out
}

func CompareProblems(a, b diag.Problem) int {
	return cmp.Or(
		compareRefs(a.Object, b.Object),
		strings.Compare(a.Field, b.Field),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Reason, b.Reason),
		strings.Compare(a.Message, b.Message),
		strings.Compare(a.Value, b.Value),
	)
}

func compareRefs(a, b diag.Ref) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// problemsOf are those of one object among sorted ones: a part of that list.
func problemsOf(sorted diag.List, ref diag.Ref) diag.List {
	from, _ := slices.BinarySearchFunc(sorted, ref, func(p diag.Problem, ref diag.Ref) int { return compareRefs(p.Object, ref) })
	to := from
	for to < len(sorted) && sorted[to].Object == ref {
		to++
	}
	return sorted[from:to:to]
}
