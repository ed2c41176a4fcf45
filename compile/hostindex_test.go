package compile

import "testing"

func TestHostIndex(t *testing.T) {
	names := []string{"b", "a.home", "a", "b.home", "*.home", "*.far.home", "c.home", "c.home", "*"}
	objects := make([]*string, len(names))
	for i := range names {
		objects[i] = &names[i]
	}
	index := newHostIndex(objects)
	for i, name := range names {
		index.add(name, i)
	}
	for _, test := range []struct {
		host, domain string
		want         int
	}{
		{"a.home", "home", 1}, // The short name comes later.
		{"b.home", "home", 0}, // It comes first.
		{"b.home", "away", 3},
		{"a.away", "away", 2},
		{"c.home", "home", 6},
		{"d.home", "away", 4},
		{"d.far.home", "home", 5},
		{"a", "", 8}, // A host of one label has no domain.
		{"a.", "", 2},
		{"d.away", "home", 8},
	} {
		if got := index.find(test.host, test.domain, anyone); got != objects[test.want] {
			t.Errorf("%s in %q: want entry %d, %q, found %v", test.host, test.domain, test.want, names[test.want], *got)
		}
	}
	if found := index.exact("d.home", "home", anyone); found != nil {
		t.Errorf("found %s for a host that only wildcards are for", *found)
	}
}

func anyone(*string) bool { return true }

func TestHostIndexPassesOverWhatIsNotSeen(t *testing.T) {
	names := []string{"hidden", "hidden 2", "seen"}
	objects := []*string{&names[0], &names[1], &names[2]}
	index := newHostIndex(objects)
	index.add("a.home", 0)
	index.add("a", 1)
	index.add("*.home", 2)
	seen := func(name *string) bool { return *name == "seen" }
	if got := index.find("a.home", "home", seen); got != objects[2] {
		t.Errorf("found %v", got)
	}
}
