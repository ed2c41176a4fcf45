package compile

import (
	"slices"
	"strings"
)

// hostIndex finds the objects of one kind by host. Of two for the same host
// the first is found. Short names stand apart, so that one index serves the
// proxies of all domains.
type hostIndex[T any] struct {
	objects []*T
	whole   map[string][]int // hosts and wildcards, to positions in objects
	short   map[string][]int // names that the caller's domain completes, likewise
	wild    bool             // whether there is any wildcard
}

func newHostIndex[T any](objects []*T) *hostIndex[T] {
	return &hostIndex[T]{objects: objects, whole: map[string][]int{}, short: map[string][]int{}}
}

// add in the order of objects.
func (x *hostIndex[T]) add(name string, position int) {
	names := x.whole
	if isShort(name) {
		names = x.short
	}
	names[name] = append(names[name], position)
	x.wild = x.wild || strings.HasPrefix(name, "*")
}

// exact is the first seen object for this very host, or wildcard; nil when
// there is none.
func (x *hostIndex[T]) exact(host, domain string, seen func(*T) bool) *T {
	isSeen := func(i int) bool { return seen(x.objects[i]) }
	at := slices.IndexFunc(x.whole[host], isSeen)
	best := len(x.objects)
	if at >= 0 {
		best = x.whole[host][at]
	}
	if name, rest, dotted := strings.Cut(host, "."); dotted && rest == domain {
		if at := slices.IndexFunc(x.short[name], isSeen); at >= 0 {
			best = min(best, x.short[name][at])
		}
	}
	if best == len(x.objects) {
		return nil
	}
	return x.objects[best]
}

// find looks for the host itself, then for wildcards, the longest first.
func (x *hostIndex[T]) find(host, domain string, seen func(*T) bool) *T {
	if found := x.exact(host, domain, seen); found != nil || !x.wild {
		return found
	}
	for wildcard := range wildcards(host) {
		if found := x.exact(wildcard, domain, seen); found != nil {
			return found
		}
	}
	return nil
}

// wildcards that a host falls under, the longest first.
func wildcards(host string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := strings.IndexByte(host, '.'); at >= 0; {
			if !yield("*" + host[at:]) {
				return
			}
			next := strings.IndexByte(host[at+1:], '.')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		yield("*")
	}
}
