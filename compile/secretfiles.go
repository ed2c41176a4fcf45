package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// takeFiles sets the contents of the files that the settings name, and the roots of the
// mesh. It must be called within graph.Do.
func (m *model) takeFiles(files *mesh.FileSecrets) {
	for name := range m.settings.SecretFiles {
		m.fileSecrets.Set(name, files.All()[name])
	}
	m.roots.Set(none{}, files.Roots())
}

// inFiles reports whether a name stands for files and not for an object.
func (m *model) inFiles(name string) bool {
	_, named := m.settings.SecretFiles[name]
	return named
}

// checkSecret reports an object that no proxy receives.
func (p *plan) checkSecret(s *secret) {
	if p.inFiles(s.name()) {
		p.conflict(diag.SecretClaimed, s.ref, "", "proxies do not get it: they get the files that secretFiles of the mesh settings names for "+s.name())
	}
}

// checkSecretFiles reports files that cannot be used. These problems belong to the
// settings.
func (p *plan) checkSecretFiles() {
	for _, name := range slices.Sorted(maps.Keys(p.settings.SecretFiles)) {
		if why := p.fileSecrets.Get(p.r, name).Problem; why != "" {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.TLSUnmet,
				Field: fmt.Sprintf("secretFiles[%s]", name), Message: why,
			})
		}
	}
}
