package discovery

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/diag"
)

// set is all resources of one type that a view has, by unique names.
type set struct {
	typeURL  string
	sorted   []*resource   // by name
	problems diag.Interned // of the resources and of the set

	// proxyless: endpoints as clients of gRPC have them.
	proxyless bool

	version string // of an answer that holds them all
	body    brief[[]byte]

	last atomic.Pointer[setDiff] // that was asked for
}

// newSet takes the resources in, but for those that are left out. Of those with
// one name the first stays.
func newSet(typeURL string, resources []*resource) *set {
	s := &set{typeURL: typeURL, sorted: make([]*resource, 0, len(resources))}
	for _, r := range resources {
		s.problems = append(s.problems, r.problems...)
		if r.shell != nil {
			s.sorted = append(s.sorted, r)
		}
	}
	byName := func(a, b *resource) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(s.sorted, byName) {
		slices.SortStableFunc(s.sorted, byName)
	}
	s.sorted = slices.CompactFunc(s.sorted, func(r, before *resource) bool {
		if r.name == before.name {
			s.problems = append(s.problems, interned(notServed(typeURL, r.name, r.origin, "is left out", "has the name of another one"))...)
		}
		return r.name == before.name
	})
	s.version = versionOf(nil, s.sorted)
	return s
}

// notServed is the problem of what an Envoy would refuse.
func notServed(typeURL, name string, origin diag.Ref, outcome, why string) diag.Problem {
	kind := typeURL[strings.LastIndexByte(typeURL, '.')+1:]
	return diag.Problem{
		Severity: diag.Error,
		Reason:   diag.NotHonoured,
		Code:     diag.Contradicts,
		Object:   origin,
		Message:  fmt.Sprintf("%s %s %s: the generated configuration %s", kind, name, outcome, why),
	}
}

// named is nil when there is none.
func (s *set) named(name string) *resource {
	at, found := s.search(name)
	if !found {
		return nil
	}
	return s.sorted[at]
}

// search is where a name stands, or would.
func (s *set) search(name string) (at int, found bool) {
	return slices.BinarySearchFunc(s.sorted, name, func(r *resource, name string) int { return strings.Compare(r.name, name) })
}

// answer a poll for these names, for everything when there are none. Names
// that do not exist are left out.
func (s *set) answer(names []string) Answer {
	if len(names) > 0 {
		return gather(s.typeURL, names, s.named)
	}
	return Answer{Version: s.version, compose: func() []byte {
		return *s.body.get(func() *[]byte { return body(s.typeURL, s.version, s.sorted) })
	}}
}

// gather answers a poll for some names; find returns nil for what does not
// exist. A poll for one name is what Envoy sends for routes and endpoints.
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
	version := versionOf(names, found)
	return Answer{Version: version, compose: func() []byte { return *body(typeURL, version, found) }}
}
