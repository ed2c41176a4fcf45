package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// References returns the objects that an object names and those that name it, and the
// revision of the configuration in force, from which they were computed.
func (p *Publisher) References(key schema.Key) (found diag.References, revision int64, err error) {
	if _, err := p.published(); err != nil {
		return found, 0, err
	}
	defer p.asking()()
	revision = p.encoder.Current.Load().Mesh.Revision
	if err := p.recoverPanic("references", func() error { found = p.compiler.References(key); return nil }); err != nil {
		return found, 0, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return found, revision, nil
}
