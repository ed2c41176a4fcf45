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
	// closed stands in for it where Envoy would refuse it; nil when there is no
	// such thing, and it is left out.
	closed func() v3.Message
}

// newSet encodes and checks. An entry that Envoy would refuse, and with it the
// whole answer, is closed. What was good before does not stay: it may let through
// what is no longer to pass, and another replica may never have had it.
func newSet(p *pool, typeURL string, entries []entry) *set {
	s := &set{typeURL: typeURL, byName: make(map[string]*resource, len(entries))}
	for _, e := range entries {
		if s.byName[e.name] != nil {
			s.reject(e, "is left out", "has the name of another one")
			continue
		}
		r, err := p.resource(typeURL, e.name, e.message)
		if err != nil {
			r = s.close(p, e, err)
		}
		if r != nil {
			s.byName[e.name] = r
			s.sorted = append(s.sorted, r)
		}
	}
	slices.SortFunc(s.sorted, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	return s
}

// close is what stands in for an entry, nil for nothing.
func (s *set) close(p *pool, e entry, refused error) *resource {
	why := "would be refused by Envoy: " + refused.Error()
	if e.closed != nil {
		if r, err := p.resource(s.typeURL, e.name, e.closed()); err == nil {
			s.reject(e, "is closed, requests get 503", why)
			return r
		}
	}
	s.reject(e, "is left out", why)
	return nil
}

func (s *set) reject(e entry, outcome, why string) {
	kind := s.typeURL[strings.LastIndexByte(s.typeURL, '.')+1:]
	s.problems = append(s.problems, diag.Problem{
		Severity: diag.Error,
		Reason:   diag.NotHonoured,
		Object:   e.origin,
		Message:  fmt.Sprintf("%s %s %s: the generated configuration %s", kind, e.name, outcome, why),
	})
}

// named is nil when there is none.
func (s *set) named(name string) *resource { return s.byName[name] }

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
