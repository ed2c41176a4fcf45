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
	type distinct struct {
		text     string // backwards
		wildcard bool
		first    int // where the host stands first
		least    int // the answer
	}
	byHost := make(map[string]*distinct, len(hosts))
	var all []*distinct
	for i, host := range hosts {
		if byHost[host] == nil {
			text, wildcard := backwards(host)
			byHost[host] = &distinct{text, wildcard, i, i}
			all = append(all, byHost[host])
		}
	}
	// A wildcard stands before all that it covers.
	slices.SortFunc(all, func(a, b *distinct) int {
		switch c := cmp.Compare(a.text, b.text); {
		case c != 0 || a.wildcard == b.wildcard:
			return c
		case a.wildcard:
			return -1
		default:
			return 1
		}
	})
	var around []*distinct // the wildcards that cover the present host, widest first
	leave := func() {
		last := len(around) - 1
		if last > 0 {
			around[last-1].least = min(around[last-1].least, around[last].least)
		}
		around = around[:last]
	}
	outer := make(map[*distinct]int, len(all)) // the least index of the wildcards around
	for _, host := range all {
		for len(around) > 0 && !strings.HasPrefix(host.text, around[len(around)-1].text) {
			leave()
		}
		outer[host] = host.first
		if n := len(around); n > 0 {
			outer[host] = min(host.first, outer[around[n-1]])
			around[n-1].least = min(around[n-1].least, host.first)
		}
		if host.wildcard {
			around = append(around, host)
		}
	}
	for len(around) > 0 {
		leave()
	}
	out := make([]int, len(hosts))
	for i, host := range hosts {
		one := byHost[host]
		out[i] = min(one.least, outer[one])
	}
	return out
}
