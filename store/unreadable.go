package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Unreadable is a stored value that cannot be decoded as an object: its bytes were damaged,
// or another program wrote it. No reader gets it as an object, so none acts on a part of
// one. A delete removes it, and an update with a whole object replaces it.
type Unreadable struct {
	// Key is empty if the place of the value belongs to no object.
	Key schema.Key
	// Place is where the store keeps the value.
	Place    string
	Revision int64
	// Why describes the fault of the value.
	Why string
}

// Reading reports that a value cannot be read, or that there is no longer such a value.
type Reading struct {
	Unreadable
	// Mended means that the place has a readable object again, or no value.
	Mended bool
}

// Inspector is a Reader that keeps a list of the unreadable values, so that it need not
// read all values again.
type Inspector interface {
	// Unreadable returns the values in scope that cannot be read at present, sorted by
	// key and place.
	Unreadable(scope Scope) []Unreadable
}

// UnreadableIn returns the unreadable values that a Reader knows, or nil if it is no
// Inspector.
func UnreadableIn(r Reader, scope Scope) []Unreadable {
	if i, ok := r.(Inspector); ok {
		return i.Unreadable(scope)
	}
	return nil
}

const howToMend = "delete it, or replace it as a whole ('istioctl history' shows its older states)"

// Err returns the error of a request for the object.
func (u Unreadable) Err() *Error {
	return &Error{Kind: ErrUnreadable, Key: u.Key, Detail: "the stored value cannot be read: " + u.Why + "; " + howToMend}
}

// Problem returns the problem to report about the configuration.
func (u Unreadable) Problem() diag.Problem {
	p := diag.Problem{
		Severity: diag.Error, Reason: diag.Malformed, Code: diag.PartLeftOut, Object: u.Key.Ref(),
		Message: "the object is left out, its stored value cannot be read: " + u.Why + "; " + howToMend,
	}
	if u.Key == (schema.Key{}) {
		p.Message = "the value stored at " + u.Place + " is left out, it cannot be read: " + u.Why
	}
	return p
}

// FollowedProblem is Problem for an object whose last good state is still in use at the
// proxies.
func (u Unreadable) FollowedProblem(last *schema.Object) diag.Problem {
	p := u.Problem()
	p.Message = "the stored value cannot be read: " + u.Why + "; proxies follow the last good state, of revision " + last.Meta.ResourceVersion + ": " + howToMend
	return p
}

// UnreadableSet holds the unreadable values that a copy of a store knows.
type UnreadableSet struct {
	byPlace map[string]Unreadable
	byKey   map[schema.Key]Unreadable
}

// NewUnreadableSet returns a set with the values of a list.
func NewUnreadableSet(all []Unreadable) UnreadableSet {
	s := UnreadableSet{map[string]Unreadable{}, map[schema.Key]Unreadable{}}
	for _, u := range all {
		s.Apply(Reading{Unreadable: u})
	}
	return s
}

// Apply updates the set with a reading and reports whether the set changed.
func (s *UnreadableSet) Apply(r Reading) bool {
	known, was := s.byPlace[r.Place]
	if r.Mended {
		delete(s.byPlace, r.Place)
		delete(s.byKey, r.Key)
		return was
	}
	s.byPlace[r.Place] = r.Unreadable
	if r.Key != (schema.Key{}) {
		s.byKey[r.Key] = r.Unreadable
	}
	return known != r.Unreadable
}

// Len returns the number of unreadable values.
func (s *UnreadableSet) Len() int { return len(s.byPlace) }

// Of returns the unreadable value under a key; ok is false if there is none.
func (s *UnreadableSet) Of(key schema.Key) (u Unreadable, ok bool) {
	u, ok = s.byKey[key]
	return u, ok
}

// In implements Inspector.Unreadable.
func (s *UnreadableSet) In(scope Scope) []Unreadable {
	if len(s.byPlace) == 0 {
		return nil
	}
	in := func(u Unreadable) bool { return scope == (Scope{}) || u.Key != (schema.Key{}) && scope.Contains(u.Key) }
	all := slices.Collect(maps.Values(s.byPlace))
	all = slices.DeleteFunc(all, func(u Unreadable) bool { return !in(u) })
	slices.SortFunc(all, func(a, b Unreadable) int {
		return cmp.Or(strings.Compare(a.Key.String(), b.Key.String()), strings.Compare(a.Place, b.Place))
	})
	return all
}
