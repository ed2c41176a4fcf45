package mesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// newProblems returns the problems of those touched objects whose problems changed.
func (r *registry) newProblems(t *touched) map[diag.Ref]diag.List {
	out := map[diag.Ref]diag.List{}
	for ref := range t.objects {
		problems := r.problemsOf(ref)
		if slices.Equal(problems, r.problems[ref]) {
			continue
		}
		out[ref] = problems
		if r.problems[ref] = problems; len(problems) == 0 {
			delete(r.problems, ref)
		}
	}
	return out
}

func (r *registry) problemsOf(ref diag.Ref) diag.List {
	if e := r.entries[schema.Key(ref)]; e != nil {
		return e.own.Beside(e.problems.List())
	}
	if w := r.workloads.byKey[schema.Key(ref)]; w != nil {
		return w.own.Beside(w.allProblems())
	}
	return nil
}

// allProblems returns the workload's own problems, followed by those that the
// entries that pick it have with it, by the age of the entries.
func (w *workload) allProblems() diag.List {
	var with []*entry
	for e := range w.pickers {
		if e.elsewhere[w.origin.Ref()] != nil {
			with = append(with, e)
		}
	}
	slices.SortFunc(with, func(a, b *entry) int { return compareAge(a.Object, b.Object) })
	var all diag.Collector
	all.Merge(&w.problems)
	for _, e := range with {
		all.Merge(e.elsewhere[w.origin.Ref()])
	}
	if w.spec != nil && w.fitting == 0 {
		all.Add(unselected(w))
	}
	return all.List()
}

func unselected(w *workload) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.SelectsNothing, Object: w.origin.Ref(),
		Message: "no ServiceEntry of the namespace selects this workload, so it serves nothing",
	}
}

// replacedProblems returns a list, sorted by object, with the problems of some
// objects replaced. Without changes it returns the same list.
func replacedProblems(list diag.List, of map[diag.Ref]diag.List) diag.List {
	if len(of) == 0 {
		return list
	}
	compare := func(p diag.Problem, ref diag.Ref) int { return cmp.Compare(p.Object.String(), ref.String()) }
	var out diag.List
	for _, ref := range slices.SortedFunc(maps.Keys(of), func(a, b diag.Ref) int { return cmp.Compare(a.String(), b.String()) }) {
		at, _ := slices.BinarySearchFunc(list, ref, compare)
		out, list = append(out, list[:at]...), list[at:]
		for len(list) > 0 && list[0].Object == ref {
			list = list[1:]
		}
		out = append(out, of[ref]...)
	}
	return append(out, list...)
}
