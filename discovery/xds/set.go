package xds

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
)

// Set has all resources of one type in a view. Their names are unique.
type Set struct {
	TypeURL  string
	Sorted   []*Resource   // by name
	Problems diag.Interned // of the resources and of the set

	// Proxyless sets have endpoints in the form for clients of gRPC.
	Proxyless bool

	Version string // of the answer that has all of them
	body    cached.Brief[[]byte]

	last atomic.Pointer[Diff] // that was asked for
}

// NewSet returns a set of resources, except those that are left out because Envoy would
// refuse them. Of several resources with one name it keeps the first.
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

// NewEndpointSet returns a set of endpoints, which must be sorted by name. No poll asks for
// all of them, so it has no version.
func NewEndpointSet(sorted []*Resource, proxyless bool) *Set {
	return &Set{TypeURL: EndpointType, Sorted: sorted, Proxyless: proxyless}
}

// notServed returns the problem of a resource that an Envoy would refuse.
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

// Named returns nil if there is no resource of the name.
func (s *Set) Named(name string) *Resource {
	at, found := s.search(name)
	if !found {
		return nil
	}
	return s.Sorted[at]
}

// search returns the index of a name, or where it would be inserted.
func (s *Set) search(name string) (at int, found bool) {
	return slices.BinarySearchFunc(s.Sorted, name, func(r *Resource, name string) int { return strings.Compare(r.Name, name) })
}

// Answer answers a poll for some names, or for everything if there are no names. It leaves
// out names that do not exist.
func (s *Set) Answer(names []string) Answer {
	if len(names) > 0 {
		return Gather(s.TypeURL, names, s.Named)
	}
	return Answer{Version: s.Version, Compose: func() []byte {
		return *s.body.Get(func() *[]byte { return body(s.TypeURL, s.Version, s.Sorted) })
	}}
}

// EncodeJSON makes the JSON of all resources that do not have it yet. It returns early if
// ctx ends.
func (s *Set) EncodeJSON(ctx context.Context) {
	for _, r := range s.Sorted {
		if ctx.Err() != nil {
			return
		}
		r.sizeJSON()
		runtime.Gosched() // There may be thousands of resources, and requests wait.
	}
}

// Gather answers a poll for some names. find returns nil for a name that does not exist.
// For routes and endpoints an Envoy polls one name at a time.
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

// Unique sorts resources by name, in place, and keeps the first of each name.
func Unique(all []*Resource) []*Resource {
	slices.SortFunc(all, func(a, b *Resource) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b *Resource) bool { return a.Name == b.Name })
}

func UniqueNames(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// OfHost returns the range of the endpoint sets of a service. Their keys are its host, or
// begin with the host and a bar (mesh.ServiceKey).
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
