package xds

import (
	"strings"
	"weak"
)

// Diff is the difference between two sets. All proxies that move from one to the other
// share it.
type Diff struct {
	from    weak.Pointer[Set]
	Changed []*Resource // new ones among them
	Removed []string
}

var sameSet = &Diff{}

// Since returns the difference from an older set, or from nothing if older is nil.
func (s *Set) Since(older *Set) *Diff {
	if older == nil {
		return &Diff{Changed: s.Sorted}
	}
	if older == s {
		return sameSet
	}
	from := weak.Make(older)
	if known := s.last.Load(); known != nil && known.from == from {
		return known
	}
	d := &Diff{from: from}
	d.compare(older.Sorted, s.Sorted)
	s.last.Store(d)
	return d
}

// compare walks two lists sorted by name.
func (d *Diff) compare(older, newer []*Resource) {
	for len(older) > 0 || len(newer) > 0 {
		switch order := compareFirst(older, newer); {
		case order < 0:
			d.Removed = append(d.Removed, older[0].Name)
			older = older[1:]
		case order > 0:
			d.Changed = append(d.Changed, newer[0])
			newer = newer[1:]
		default:
			if older[0] != newer[0] && older[0].Hash != newer[0].Hash {
				d.Changed = append(d.Changed, newer[0])
			}
			older, newer = older[1:], newer[1:]
		}
	}
}

func compareFirst(a, b []*Resource) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Name, b[0].Name)
}
