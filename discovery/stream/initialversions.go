package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// came is what a proxy says it has of a type as it comes. It holds until what it
// should have is known.
type initialVersions struct {
	before   bool              // it came with something
	version  string            // of all, state of the world
	versions map[string]string // by name, delta
	// gone are those of them that nobody has any more, and that are not withdrawn
	// yet.
	gone []string
	// bytes of names and versions, until all of them are withdrawn
	bytes int
}

func (c *initialVersions) withSomething() bool { return c.version != "" || len(c.versions) > 0 }

// comeWith takes the versions of a delta client. A cluster that was sent meanwhile
// waits for its endpoints even if they are the same.
func (t *subscription) takeInitial(versions map[string]string) {
	t.initial.versions = map[string]string{}
	for name, version := range versions {
		if !t.pending.has(name) {
			t.initial.versions[name] = version
			t.initial.bytes += len(name) + len(version)
		}
	}
}

// meet takes what the proxy has said it has as if it had been sent, and owes it the
// rest.
func (t *subscription) meet(to compiled.At, find func(string) *xds.Resource) {
	has := t.initial
	t.initial.version, t.initial.versions = "", nil
	t.initial.before = has.before || has.withSomething()
	switch {
	case t.all && has.version != "" && has.version == to.Set.Version:
		t.sent, t.acked, t.pending = to, to, pending{}
	case len(has.versions) > 0:
		t.sent, t.initial.bytes = to, 0
		t.meetEach(has.versions, to.Set, find)
	}
}

func (t *subscription) meetEach(has map[string]string, desired *xds.Set, find func(string) *xds.Resource) {
	t.pending.answer, t.pending.all = false, false
	for name, version := range has {
		switch r := find(name); {
		case r == nil && t.Wild():
			t.pending.remove(name)
			t.initial.gone = append(t.initial.gone, name)
			t.initial.bytes += len(name)
		case r != nil && r.Hash.Version() == version:
			t.pending.remove(name)
		case t.Wants(name):
			t.pending.add(name)
		}
	}
	slices.Sort(t.initial.gone)
	if !t.all {
		return
	}
	for _, r := range desired.Sorted {
		if _, ok := has[r.Name]; !ok {
			t.pending.add(r.Name)
		}
	}
}

// withdraw owes the proxy that it hears of what is gone.
func (t *subscription) withdrawGone() {
	for _, name := range t.initial.gone {
		if t.sent.Named(name) == nil {
			t.pending.add(name)
		}
	}
	t.initial.gone, t.initial.bytes = nil, 0
}
