package discovery

import (
	"strings"
	"weak"
)

// setDiff is what leads from one set to another. All proxies that go the same way
// share it.
type setDiff struct {
	from    weak.Pointer[set]
	changed []*resource // new ones among them
	removed []string
}

var sameSet = &setDiff{}

// since is what differs from an older set, nil for one without anything.
func (s *set) since(older *set) *setDiff {
	if older == nil {
		return &setDiff{changed: s.sorted}
	}
	if older == s {
		return sameSet
	}
	from := weak.Make(older)
	if known := s.last.Load(); known != nil && known.from == from {
		return known
	}
	d := &setDiff{from: from}
	d.compare(older.sorted, s.sorted)
	s.last.Store(d)
	return d
}

// compare walks two lists sorted by name.
func (d *setDiff) compare(older, newer []*resource) {
	for len(older) > 0 || len(newer) > 0 {
		switch order := compareFirst(older, newer); {
		case order < 0:
			d.removed = append(d.removed, older[0].name)
			older = older[1:]
		case order > 0:
			d.changed = append(d.changed, newer[0])
			newer = newer[1:]
		default:
			if older[0] != newer[0] && older[0].hash != newer[0].hash {
				d.changed = append(d.changed, newer[0])
			}
			older, newer = older[1:], newer[1:]
		}
	}
}

func compareFirst(a, b []*resource) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].name, b[0].name)
}
