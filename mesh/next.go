package mesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
)

// identity identifies a snapshot. Later snapshots can refer to it without keeping
// the snapshot in memory.
type identity struct{ _ byte }

// Next returns the snapshot after some changes, each of which replaces the object
// with its key. Unchanged parts are shared with s, and unchanged services are
// identical. If another snapshot was already made from s, the registry is shared
// only if it is unchanged as a whole.
func (s *Snapshot) Next(revision int64, changes []schema.Change) *Snapshot {
	next := &Snapshot{
		Revision: revision, Settings: s.Settings, Files: s.Files, Keys: s.Keys,
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
	changed := registryChanges{ofKind["ServiceEntry"], ofKind["WorkloadEntry"], ofKind[schema.KindPeerAuthentication]}
	if changed.any() {
		next.Registry = s.Registry.next(next.objects, changed)
	}
	next.domains = next.domainsAfter(s, changes)
	next.asked, next.turned = next.askedAfter(s, changes)
	next.localities = next.localitiesAfter(s, changes)
	return next
}

// ChangesSince returns the changes between a snapshot and s. It returns false if s
// was not made directly from that one. The changes are shared.
func (s *Snapshot) ChangesSince(before *Snapshot) ([]schema.Change, bool) {
	return s.changes, before != nil && s.after == before.id
}

// replaced returns a list sorted by key after some changes. The last change of an
// object wins. It builds the list in one pass, however many changes there are.
func replaced(objs []*schema.Object, changes []schema.Change) []*schema.Object {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b schema.Change) int { return CompareKeys(a.Object(), b.Object()) })
	out := make([]*schema.Object, 0, len(objs)+len(changes))
	for i, c := range changes {
		if i+1 < len(changes) && CompareKeys(c.Object(), changes[i+1].Object()) == 0 {
			continue
		}
		at, found := slices.BinarySearchFunc(objs, c.Object(), CompareKeys)
		out = append(out, objs[:at]...)
		if objs = objs[at:]; found {
			objs = objs[1:]
		}
		if c.After != nil {
			out = append(out, c.After)
		}
	}
	return append(out, objs...)
}
