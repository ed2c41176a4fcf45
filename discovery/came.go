package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// came is what a proxy says it has of a type as it comes. It holds until what it
// should have is known.
type came struct {
	before   bool              // it came with something
	version  string            // of all, state of the world
	versions map[string]string // by name, delta
	// gone are those of them that nobody has any more, and that are not withdrawn
	// yet.
	gone []string
	// bytes of names and versions, until all of them are withdrawn
	bytes int
}

func (c *came) withSomething() bool { return c.version != "" || len(c.versions) > 0 }

// comeWith takes the versions of a delta client. A cluster that was sent meanwhile
// waits for its endpoints even if they are the same.
func (t *subscribed) comeWith(versions map[string]string) {
	t.came.versions = map[string]string{}
	for name, version := range versions {
		if !t.owed.has(name) {
			t.came.versions[name] = version
			t.came.bytes += len(name) + len(version)
		}
	}
}

// meet takes what the proxy has said it has as if it had been sent, and owes it the
// rest.
func (t *subscribed) meet(to compiled.At, find func(string) *xds.Resource) {
	has := t.came
	t.came.version, t.came.versions = "", nil
	t.came.before = has.before || has.withSomething()
	switch {
	case t.all && has.version != "" && has.version == to.Set.Version:
		t.sent, t.good, t.owed = to, to, owed{}
	case len(has.versions) > 0:
		t.sent, t.came.bytes = to, 0
		t.meetEach(has.versions, to.Set, find)
	}
}

func (t *subscribed) meetEach(has map[string]string, desired *xds.Set, find func(string) *xds.Resource) {
	t.owed.answer, t.owed.all = false, false
	for name, version := range has {
		switch r := find(name); {
		case r == nil && t.Wild():
			t.owed.remove(name)
			t.came.gone = append(t.came.gone, name)
			t.came.bytes += len(name)
		case r != nil && r.Hash.Version() == version:
			t.owed.remove(name)
		case t.Wants(name):
			t.owed.add(name)
		}
	}
	slices.Sort(t.came.gone)
	if !t.all {
		return
	}
	for _, r := range desired.Sorted {
		if _, ok := has[r.Name]; !ok {
			t.owed.add(r.Name)
		}
	}
}

// withdraw owes the proxy that it hears of what is gone.
func (t *subscribed) withdraw() {
	for _, name := range t.came.gone {
		if t.sent.Named(name) == nil {
			t.owed.add(name)
		}
	}
	t.came.gone, t.came.bytes = nil, 0
}
