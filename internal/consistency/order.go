package consistency

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// order is the order of changes, with the state at each revision.
type order struct {
	changes []Change // By revision.
	byKey   map[schema.Key][]Change
}

func newOrder(changes []Change) *order {
	o := &order{changes: slices.Clone(changes), byKey: map[schema.Key][]Change{}}
	slices.SortStableFunc(o.changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, c := range o.changes {
		o.byKey[c.Key] = append(o.byKey[c.Key], c)
	}
	return o
}

// at returns the last change of an object up to a revision, and the index of the next
// one.
func (o *order) at(key schema.Key, revision int64) (last Change, next int) {
	all := o.byKey[key]
	next = sort.Search(len(all), func(i int) bool { return all[i].Revision > revision })
	if next > 0 {
		last = all[next-1]
	}
	return last, next
}

// change returns the change of an object at exactly this revision.
func (o *order) change(key schema.Key, revision int64) (Change, bool) {
	c, _ := o.at(key, revision)
	return c, c.Revision == revision && revision != 0
}

// before returns the state of an object just before a revision, false for none.
func (o *order) before(key schema.Key, revision int64) (Version, bool) {
	c, _ := o.at(key, revision-1)
	return c.Version, present(c)
}

func present(c Change) bool { return c.Type == store.Added || c.Type == store.Modified }

// state returns the correct list of a scope at a revision.
func (o *order) state(scope store.Scope, revision int64) map[schema.Key]Version {
	state := map[schema.Key]Version{}
	for key := range o.byKey {
		if c, _ := o.at(key, revision); scope.Contains(key) && present(c) {
			state[key] = c.Version
		}
	}
	return state
}

// ever reports whether an object was in a matching state at some revision from low to
// high.
func (o *order) ever(key schema.Key, low, high int64, suits func(last Change) bool) bool {
	last, next := o.at(key, low)
	for all := o.byKey[key]; ; next++ {
		if suits(last) {
			return true
		}
		if next == len(all) || all[next].Revision > high {
			return false
		}
		last = all[next]
	}
}

// within returns the changes in a scope after one revision and up to another.
func (o *order) within(scope store.Scope, after, to int64) []Change {
	first := sort.Search(len(o.changes), func(i int) bool { return o.changes[i].Revision > after })
	var found []Change
	for _, c := range o.changes[first:] {
		if c.Revision > to {
			break
		}
		if scope.Contains(c.Key) {
			found = append(found, c)
		}
	}
	return found
}

// sound finds errors in the order itself: an object that is created twice, or changed
// when it does not exist.
func (o *order) sound() (found []Violation) {
	for key, all := range o.byKey {
		var before Change
		for _, c := range all {
			if c.Revision <= before.Revision || present(before) == (c.Type == store.Added) {
				found = append(found, Violation{"order", fmt.Sprintf("%s: %s comes after %s", key, c, before)})
			}
			before = c
		}
	}
	return found
}
