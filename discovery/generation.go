package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// generation is what follows from one snapshot and is the same for every proxy.
// What is not, hangs on views, which follow each other in their slots, each in
// its own time.
type generation struct {
	server    *Publisher
	serial    int64 // counts generations of this process
	mesh      *mesh.Snapshot
	endpoints endpointSets

	registrations cached.Lazy[xds.Answer]
}

func newGeneration(s *Publisher, snapshot *mesh.Snapshot, before *generation) *generation {
	g := &generation{server: s, mesh: snapshot}
	if before != nil {
		g.serial = before.serial + 1
	}
	g.endpoints = endpointSets{snapshot, s}
	return g
}
