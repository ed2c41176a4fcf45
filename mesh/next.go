package mesh

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// identity is a snapshot's, for those that came from it to name without keeping
// it in memory.
type identity struct{ _ byte }

// Next is the snapshot after some changes, each of which replaces the object with
// its key. What did not change is shared with s, services by identity.
func (s *Snapshot) Next(revision int64, changes []schema.Change) *Snapshot {
	next := &Snapshot{
		Revision: revision, Settings: s.Settings,
		Registry: s.Registry, objects: maps.Clone(s.objects), namespaces: maps.Clone(s.namespaces),
		id: new(identity), after: s.id, changes: changes,
	}
	ofKind := map[string][]schema.Change{}
	for _, c := range changes {
		if o := c.After; o != nil {
			ofKind[o.Kind.Kind] = append(ofKind[o.Kind.Kind], c)
			next.namespaces.add(o, 1)
		} else {
			ofKind[c.Before.Kind.Kind] = append(ofKind[c.Before.Kind.Kind], c)
		}
		if c.Before != nil {
			next.namespaces.add(c.Before, -1)
		}
	}
	for kind, of := range ofKind {
		next.objects[kind] = replaced(s.objects[kind], of)
	}
	if len(ofKind["ServiceEntry"]) > 0 || len(ofKind["WorkloadEntry"]) > 0 {
		next.Registry = s.register(next.objects)
	}
	next.domains = s.domains
	if next.Registry != s.Registry || !sameKeys(next.namespaces, s.namespaces) {
		next.domains = next.knownDomains()
	}
	return next
}

// ChangesSince are those by which s came from a snapshot; false when it did not
// come from that one, or not at once. The changes are shared.
func (s *Snapshot) ChangesSince(before *Snapshot) ([]schema.Change, bool) {
	return s.changes, before != nil && s.after == before.id
}

// replaced is a list in order of keys after some changes.
func replaced(objs []*schema.Object, changes []schema.Change) []*schema.Object {
	out := slices.Clone(objs)
	for _, c := range changes {
		o := c.After
		if o == nil {
			o = c.Before
		}
		at, found := slices.BinarySearchFunc(out, o, CompareKeys)
		switch {
		case found && c.After == nil:
			out = slices.Delete(out, at, at+1)
		case found:
			out[at] = c.After
		case c.After != nil:
			out = slices.Insert(out, at, c.After)
		}
	}
	return out
}

// namespaces counts the objects that are in a namespace, or tell its proxies
// from others.
type namespaces map[string]int

// add counts an object n times.
func (n namespaces) add(o *schema.Object, times int) {
	in := map[string]bool{o.Meta.Namespace: true}
	if spec, err := o.Spec(); err == nil {
		named(spec, in)
	}
	for namespace := range in {
		if n[namespace] += times; n[namespace] == 0 {
			delete(n, namespace)
		}
	}
}

func sameKeys(a, b namespaces) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return true
}

// knownDomains are those that services and namespaces have.
func (s *Snapshot) knownDomains() domains {
	d := domains{}
	for _, svc := range s.Services {
		if !svc.External || s.Settings.V1Compatibility.ShortNamesByCaller {
			_, domain, _ := strings.Cut(svc.Hostname, ".")
			d.add(domain)
		}
	}
	for namespace := range s.namespaces {
		d.add(namespace + ".svc." + s.Settings.Domain)
	}
	return d
}
