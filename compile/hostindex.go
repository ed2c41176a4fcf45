package compile

import "strings"

// hostIndex finds the objects of one kind by host. Of two for the same host
// the first is found. Short names stand apart, so that one index serves the
// proxies of all domains.
type hostIndex[T any] struct {
	objects []*T
	whole   map[string]int // hosts and wildcards, to the position in objects
	short   map[string]int // names that the caller's domain completes, likewise
	wild    bool           // whether there is any wildcard
}

func newHostIndex[T any](objects []*T) hostIndex[T] {
	return hostIndex[T]{objects: objects, whole: map[string]int{}, short: map[string]int{}}
}

// add in the order of objects.
func (x *hostIndex[T]) add(name string, position int) {
	names := x.whole
	if isShort(name) {
		names = x.short
	}
	if _, taken := names[name]; !taken {
		names[name] = position
	}
	x.wild = x.wild || strings.HasPrefix(name, "*")
}

// exact is the object for this very host, or wildcard; nil when there is none.
func (x *hostIndex[T]) exact(host, domain string) *T {
	at, found := x.whole[host]
	if name, rest, dotted := strings.Cut(host, "."); dotted && rest == domain {
		if i, named := x.short[name]; named && (!found || i < at) {
			at, found = i, true
		}
	}
	if !found {
		return nil
	}
	return x.objects[at]
}

// find looks for the host itself, then for wildcards, the longest first.
func (x *hostIndex[T]) find(host, domain string) *T {
	if found := x.exact(host, domain); found != nil || !x.wild {
		return found
	}
	for at := strings.IndexByte(host, '.'); at >= 0; {
		if found := x.exact("*"+host[at:], domain); found != nil {
			return found
		}
		next := strings.IndexByte(host[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return x.exact("*", domain)
}
