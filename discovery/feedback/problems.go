package feedback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// NewRefusalProblem returns a problem of the configuration as a whole, which belongs to no
// object.
func NewRefusalProblem(code diag.Code, message string) diag.Problem {
	return diag.Problem{Severity: diag.Error, Reason: diag.NotHonoured, Code: code, Message: message}
}

// Tally has the problems of all parts of the configuration. It keeps a problem that many
// views have only once. It is updated with every change, so a report or a count of the
// problems need not visit all views.
type Tally struct {
	parts  map[string]diag.List
	times  map[diag.Problem]int
	sorted diag.List // nil after a change
}

// Put replaces the problems of a part.
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

// differing returns two lists without their common beginning and end. In lists that are
// sorted by object, a change of one object leaves little else.
func differing(a, b diag.List) (diag.List, diag.List) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// SameList reports whether two lists have the same problems. It compares problems only if
// the lists are not the same slice.
func SameList(a, b diag.List) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// Unplaced returns the problem without its position, because generated configuration has
// none.
func Unplaced(p diag.Problem) diag.Problem {
	p.Position = nil
	return p
}

func (t *Tally) Len() int { return len(t.times) }

// List returns all problems, sorted by object. The list is shared.
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

// MaxProblems bounds the problems that a report of the configuration lists, in addition to
// the bound for each object of a view. Nobody reads more, and the answer is a few
// megabytes.
const MaxProblems = 10_000

// Readable merges two lists into one, which has at most MaxProblems problems. The first
// list must be sorted.
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

// problemsOf returns the part of a sorted list with the problems of one object.
func problemsOf(sorted diag.List, ref diag.Ref) diag.List {
	from, _ := slices.BinarySearchFunc(sorted, ref, func(p diag.Problem, ref diag.Ref) int { return compareRefs(p.Object, ref) })
	to := from
	for to < len(sorted) && sorted[to].Object == ref {
		to++
	}
	return sorted[from:to:to]
}
