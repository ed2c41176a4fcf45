package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// initialVersions are the versions of a type that a connecting proxy says it already has. It
// is kept until the view of the proxy is known.
type initialVersions struct {
	before   bool              // the proxy has something
	version  string            // one version of everything, in the state of the world
	versions map[string]string // versions by name, in delta
	// gone are the resources among them that no longer exist and are not withdrawn yet.
	gone []string
	// bytes of names and versions, until all of them are withdrawn
	bytes int
}

func (c *initialVersions) withSomething() bool { return c.version != "" || len(c.versions) > 0 }

// takeInitial records the versions of a delta client. A cluster that was sent in between
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

// meet treats what the proxy already has as if it had been sent, and makes everything else
// pending.
func (t *subscription) meet(to compiled.At, find func(string) *xds.Resource) {
	has := t.initial
	t.initial.version, t.initial.versions = "", nil
	t.initial.before = has.before || has.withSomething()
	switch {
	case t.all && has.version != "" && has.version == to.Set.Version:
		t.sent, t.acked, t.pending, t.ackedVersion = to, to, pending{}, has.version
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
		case r == nil, r.Hash.Version() == version:
			// The proxy keeps a secret that is gone: something refused may still need it.
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

// withdrawGone makes the removal of resources that no longer exist pending.
func (t *subscription) withdrawGone() {
	for _, name := range t.initial.gone {
		if t.sent.Named(name) == nil {
			t.pending.add(name)
		}
	}
	t.initial.gone, t.initial.bytes = nil, 0
}
