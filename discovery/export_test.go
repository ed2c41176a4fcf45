package discovery

import (
	"weak"

	"github.com/pilot-api/pilot-api/mesh"
)

// Knows reports whether a proxy is remembered.
func (s *Publisher) Knows(node string) bool {
	g := s.current.Load()
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.places[node] != nil
}

// Snapshot is the mesh that is published, held by nothing of the test.
func (s *Publisher) Snapshot() weak.Pointer[mesh.Snapshot] { return weak.Make(s.current.Load().mesh) }
