package xds

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
)

// Set is all resources of one type that a view has, by unique names.
type Set struct {
	TypeURL  string
	Sorted   []*Resource   // by name
	Problems diag.Interned // of the resources and of the set

	// Proxyless: endpoints as clients of gRPC have them.
	Proxyless bool

	Version string // of an answer that holds them all
	body    cached.Brief[[]byte]

	last atomic.Pointer[Diff] // that was asked for
}

// NewSet takes the resources in, but for those that are left out. Of those with
// one name the first stays.
func NewSet(typeURL string, resources []*Resource) *Set {
	s := &Set{TypeURL: typeURL, Sorted: make([]*Resource, 0, len(resources))}
	for _, r := range resources {
		s.Problems = append(s.Problems, r.Problems...)
		if r.Shell != nil {
			s.Sorted = append(s.Sorted, r)
		}
	}
	byName := func(a, b *Resource) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(s.Sorted, byName) {
		slices.SortStableFunc(s.Sorted, byName)
	}
	s.Sorted = slices.CompactFunc(s.Sorted, func(r, before *Resource) bool {
		if r.Name == before.Name {
			s.Problems = append(s.Problems, intern(notServed(typeURL, r.Name, r.origin, "is left out", "has the name of another one"))...)
		}
		return r.Name == before.Name
	})
	s.Version = VersionOf(nil, s.Sorted)
	return s
}

// NewEndpointSet returns a set of endpoints, which are sorted by name already. No poll asks
// for all of them, so it has no version.
func NewEndpointSet(sorted []*Resource, proxyless bool) *Set {
	return &Set{TypeURL: EndpointType, Sorted: sorted, Proxyless: proxyless}
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

// Named is nil when there is none.
func (s *Set) Named(name string) *Resource {
	at, found := s.search(name)
	if !found {
		return nil
	}
	return s.Sorted[at]
}

// search is where a name stands, or would.
func (s *Set) search(name string) (at int, found bool) {
	return slices.BinarySearchFunc(s.Sorted, name, func(r *Resource, name string) int { return strings.Compare(r.Name, name) })
}

// Answer a poll for these names, for everything when there are none. Names
// that do not exist are left out.
func (s *Set) Answer(names []string) Answer {
	if len(names) > 0 {
		return Gather(s.TypeURL, names, s.Named)
	}
	return Answer{Version: s.Version, Compose: func() []byte {
		return *s.body.Get(func() *[]byte { return body(s.TypeURL, s.Version, s.Sorted) })
	}}
}

// Gather answers a poll for some names; find returns nil for what does not
// exist. A poll for one name is what Envoy sends for routes and endpoints.
func Gather(typeURL string, names []string, find func(string) *Resource) Answer {
	if len(names) == 1 {
		if r := find(names[0]); r != nil {
			return r.Answer()
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var found []*Resource
	for _, n := range names {
		if r := find(n); r != nil {
			found = append(found, r)
		}
	}
	version := VersionOf(names, found)
	return Answer{Version: version, Compose: func() []byte { return *body(typeURL, version, found) }}
}

// Unique sorts by name.
func Unique(all []*Resource) []*Resource {
	slices.SortFunc(all, func(a, b *Resource) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b *Resource) bool { return a.Name == b.Name })
}

func UniqueNames(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// OfHost is where the endpoint sets of a service stand: their keys are its host, or
// begin with it and a bar (mesh.ServiceKey).
func (s *Set) OfHost(host string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if at, found := s.search(host); found && !yield(at) {
			return
		}
		host += "|"
		for at, _ := s.search(host); at < len(s.Sorted) && strings.HasPrefix(s.Sorted[at].Name, host); at++ {
			if !yield(at) {
				return
			}
		}
	}
}
