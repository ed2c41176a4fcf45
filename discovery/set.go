package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v3"
)

// set is all resources of one type that a view has, by unique names.
type set struct {
	typeURL  string
	sorted   []*resource
	byName   map[string]*resource
	problems diag.List

	all lazy[Answer]
}

// entry is a message on its way into a set.
type entry struct {
	name    string
	origin  diag.Ref
	message v3.Message
}

// newSet encodes and checks. An entry that Envoy would refuse, and with it the
// whole answer, is replaced by the last good one of its name (last may be nil)
// or left out.
func newSet(p *pool, typeURL string, entries []entry, last *set) *set {
	s := &set{typeURL: typeURL, byName: make(map[string]*resource, len(entries))}
	for _, e := range entries {
		r, err := p.resource(typeURL, e.name, e.message)
		switch {
		case err != nil:
			r = last.named(e.name)
			s.reject(e, r, "would be refused by Envoy: "+err.Error())
		case s.byName[e.name] != nil:
			s.reject(e, nil, "has the name of another one")
			r = nil
		}
		if r != nil {
			s.byName[e.name] = r
			s.sorted = append(s.sorted, r)
		}
	}
	slices.SortFunc(s.sorted, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	return s
}

func (s *set) reject(e entry, instead *resource, why string) {
	outcome := "is left out"
	if instead != nil {
		outcome = "stays as it was"
	}
	kind := s.typeURL[strings.LastIndexByte(s.typeURL, '.')+1:]
	s.problems = append(s.problems, diag.Problem{
		Severity: diag.Error,
		Reason:   diag.NotHonoured,
		Object:   e.origin,
		Message:  fmt.Sprintf("%s %s %s: the generated configuration %s", kind, e.name, outcome, why),
	})
}

// lost is an error when there was something to say and nothing of it is good:
// an Envoy would take the empty answer for an order to remove all it has.
func (s *set) lost() error {
	if len(s.problems) == 0 || len(s.sorted) > 0 {
		return nil
	}
	return fmt.Errorf("all resources of type %s are refused: %w", s.typeURL, s.problems)
}

// named is nil when there is none, also on a nil set.
func (s *set) named(name string) *resource {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// answer a poll for these names, for everything when there are none. Names
// that do not exist are left out.
func (s *set) answer(names []string) Answer {
	if len(names) == 0 {
		a, _ := s.all.get(func() (*Answer, error) {
			a := compose(s.typeURL, nil, s.sorted)
			return &a, nil
		})
		return *a
	}
	return gather(s.typeURL, names, s.named)
}

// gather answers a poll for some names; find returns nil for what does not
// exist. A poll for one name, which is what Envoy sends for routes and
// endpoints, is answered without encoding anything twice.
func gather(typeURL string, names []string, find func(string) *resource) Answer {
	if len(names) == 1 {
		if r := find(names[0]); r != nil {
			return r.answer()
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var found []*resource
	for _, n := range names {
		if r := find(n); r != nil {
			found = append(found, r)
		}
	}
	return compose(typeURL, names, found)
}
