package mesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
)

// identity is a snapshot's, for those that came from it to name without keeping
// it in memory.
type identity struct{ _ byte }

// Next is the snapshot after some changes, each of which replaces the object with
// its key. What did not change is shared with s, services by identity; where
// another snapshot came from s before, that holds of the registry only as a whole.
func (s *Snapshot) Next(revision int64, changes []schema.Change) *Snapshot {
	next := &Snapshot{
		Revision: revision, Settings: s.Settings, Files: s.Files,
		Registry: s.Registry, objects: maps.Clone(s.objects),
		id: new(identity), after: s.id, changes: changes,
	}
	ofKind := map[string][]schema.Change{}
	for _, c := range changes {
		kind := cmp.Or(c.After, c.Before).Kind.Kind
		ofKind[kind] = append(ofKind[kind], c)
	}
	for kind, of := range ofKind {
		next.objects[kind] = replaced(s.objects[kind], of)
	}
	if entries, workloads := ofKind["ServiceEntry"], ofKind["WorkloadEntry"]; len(entries)+len(workloads) > 0 {
		next.Registry = s.Registry.next(next.objects, entries, workloads)
	}
	next.domains = next.domainsAfter(s, changes)
	next.asked, next.turned = next.askedAfter(s, changes)
	next.places = next.placesAfter(s, changes)
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
