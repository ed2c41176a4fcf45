package schema

import (
	"cmp"
	"slices"
	"strings"
)

// Hosts and wildcards such as *.example.com are compared by their endings.
// Written backwards, an ending is a beginning, and in a sorted list all texts
// with one beginning stand together: what follows takes n log n comparisons.

// backwards is a host without its leading star, from its last byte to its first.
func backwards(host string) (text string, wildcard bool) {
	rest, wildcard := strings.CutPrefix(host, "*")
	reversed := []byte(rest)
	slices.Reverse(reversed)
	return string(reversed), wildcard
}

// hostSet tells which hosts are within one of its own.
type hostSet struct {
	exact map[string]bool
	// endings of the wildcards, backwards and sorted. None begins with
	// another one, so that only the last before a host can be its own.
	endings []string
}

func newHostSet(hosts []string) hostSet {
	s := hostSet{exact: make(map[string]bool, len(hosts))}
	var all []string
	for _, host := range hosts {
		if text, wildcard := backwards(host); wildcard {
			all = append(all, text)
		} else {
			s.exact[host] = true
		}
	}
	slices.Sort(all)
	for _, text := range all {
		if n := len(s.endings); n == 0 || !strings.HasPrefix(text, s.endings[n-1]) {
			s.endings = append(s.endings, text)
		}
	}
	return s
}

// covers reports whether all that a host stands for, one of the set stands for.
func (s hostSet) covers(host string) bool {
	if s.exact[host] {
		return true
	}
	text, _ := backwards(host)
	at, found := slices.BinarySearch(s.endings, text)
	return found || at > 0 && strings.HasPrefix(text, s.endings[at-1])
}

// firstOverlaps has for each host the least index of a host, perhaps its own,
// such that there is a name that both stand for.
func firstOverlaps(hosts []string) []int {
	byHost := make(map[string]*overlap, len(hosts))
	var all []*overlap
	for i, host := range hosts {
		if byHost[host] == nil {
			text, wildcard := backwards(host)
			byHost[host] = &overlap{text: text, wildcard: wildcard, first: i, within: i, around: i}
			all = append(all, byHost[host])
		}
	}
	slices.SortFunc(all, (*overlap).compare)
	nest(all)
	out := make([]int, len(hosts))
	for i, host := range hosts {
		out[i] = min(byHost[host].within, byHost[host].around)
	}
	return out
}

// overlap is a host with the least indexes of those that it has names in common
// with.
type overlap struct {
	text     string // backwards
	wildcard bool
	first    int // where the host stands first
	within   int // of the host and those that it covers
	around   int // of the host and those that cover it
}

// compare puts a wildcard before all that it covers.
func (o *overlap) compare(other *overlap) int {
	switch c := cmp.Compare(o.text, other.text); {
	case c != 0 || o.wildcard == other.wildcard:
		return c
	case o.wildcard:
		return -1
	default:
		return 1
	}
}

// nest goes through hosts in order, with the wildcards that cover the present
// one, widest first.
func nest(all []*overlap) {
	var covering []*overlap
	leave := func() {
		last := len(covering) - 1
		if last > 0 {
			covering[last-1].within = min(covering[last-1].within, covering[last].within)
		}
		covering = covering[:last]
	}
	for _, host := range all {
		for len(covering) > 0 && !strings.HasPrefix(host.text, covering[len(covering)-1].text) {
			leave()
		}
		if n := len(covering); n > 0 {
			host.around = min(host.first, covering[n-1].around)
			covering[n-1].within = min(covering[n-1].within, host.first)
		}
		if host.wildcard {
			covering = append(covering, host)
		}
	}
	for len(covering) > 0 {
		leave()
	}
}
