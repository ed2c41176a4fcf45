package schema

import (
	"cmp"
	"slices"
	"strings"
)

// Hosts and wildcards such as *.example.com are compared by their endings.
// Reversed, an ending is a prefix, and texts with one prefix are adjacent in a
// sorted list. So the functions below need n log n comparisons.

// backwards returns a host without its leading star, with its bytes reversed.
func backwards(host string) (text string, wildcard bool) {
	rest, wildcard := strings.CutPrefix(host, "*")
	reversed := []byte(rest)
	slices.Reverse(reversed)
	return string(reversed), wildcard
}

// hostSet reports which hosts are covered by hosts of the set.
type hostSet struct {
	exact map[string]bool
	// endings of the wildcards, backwards and sorted. None is a prefix of another,
	// so that only the last one before a host can cover it.
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

// covers reports whether one host of the set covers the given host.
func (s hostSet) covers(host string) bool {
	if s.exact[host] {
		return true
	}
	text, _ := backwards(host)
	at, found := slices.BinarySearch(s.endings, text)
	return found || at > 0 && strings.HasPrefix(text, s.endings[at-1])
}

// firstOverlaps returns, for each host, the lowest index of a host with which it
// has a name in common. That may be its own index.
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

// overlap is a host with the lowest indexes of the hosts with which it has names in
// common.
type overlap struct {
	text     string // backwards
	wildcard bool
	first    int // the first index of the host
	within   int // of the host and those that it covers
	around   int // of the host and those that cover it
}

// compare orders a wildcard before everything that it covers.
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

// nest visits the hosts in order, and keeps the wildcards that cover the current
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
