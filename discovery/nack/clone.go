package nack

import (
	"maps"
	"slices"
)

// Clone returns a copy that has no part in common with f which either of them changes. settled
// is false if the search for the resources, or for the parts of a route table, to blame is
// still going on.
func (f *State) Clone() (out State, settled bool) {
	if f.Searching() || f.whole != nil {
		return State{}, false
	}
	out = State{byName: maps.Clone(f.byName), tables: maps.Clone(f.tables), unclear: slices.Clone(f.unclear)}
	for name, c := range out.byName {
		copied := *c
		out.byName[name] = &copied
	}
	for name, a := range out.tables {
		copied := *a
		copied.guilty, copied.held, copied.nackedHashes = clonedParts(a.guilty), clonedParts(a.held), slices.Clone(a.nackedHashes)
		out.tables[name] = &copied
	}
	return out, true
}

func clonedParts(parts []*routePart) []*routePart {
	out := make([]*routePart, len(parts))
	for i, p := range parts {
		copied := *p
		out[i] = &copied
	}
	return out
}
