package compiled

import (
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Generation has the results of one snapshot that are the same for every proxy. Results
// that differ between proxies belong to views. Each view entry moves from one view to the
// next on its own.
type Generation struct {
	encoder   *Encoder
	Serial    int64 // counts generations of this process
	Mesh      *mesh.Snapshot
	Since     int64 // the first revision that the generation before, if any, did not show
	Endpoints endpointSets

	Registrations cached.Lazy[xds.Answer]

	complete atomic.Bool
}

// Complete records that all views have followed the generation.
func (g *Generation) Complete() { g.complete.Store(true) }

// IsComplete reports whether all views have followed the generation. Until then proxies may
// still be at a view whose endpoints are already gone.
func (g *Generation) IsComplete() bool { return g.complete.Load() }

func NewGeneration(e *Encoder, snapshot *mesh.Snapshot, before *Generation) *Generation {
	g := &Generation{encoder: e, Mesh: snapshot, Since: snapshot.Revision}
	if before != nil {
		g.Serial = before.Serial + 1
		g.Since = min(before.Mesh.Revision+1, snapshot.Revision)
	}
	g.Endpoints = endpointSets{snapshot, e}
	return g
}

// ObjectsOf returns all objects of a snapshot. It returns nil for a nil snapshot.
func ObjectsOf(s *mesh.Snapshot) []*schema.Object {
	var all []*schema.Object
	if s != nil {
		for _, kind := range schema.Kinds() {
			all = append(all, s.Objects(kind.Kind)...)
		}
	}
	return all
}
