package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// References are what an object names and what names it, by the objects of the
// configuration in force, whose revision it tells.
func (s *Publisher) References(key schema.Key) (found diag.References, revision int64, err error) {
	if _, err := s.published(); err != nil {
		return found, 0, err
	}
	s.encoder.Advancing.Lock()
	defer s.encoder.Advancing.Unlock()
	revision = s.encoder.Current.Load().Mesh.Revision
	if err := s.recoverPanic("references", func() error { found = s.compiler.References(key); return nil }); err != nil {
		return found, 0, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return found, revision, nil
}
