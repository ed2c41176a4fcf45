package compiled

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// WithKeys returns the secrets of a configuration that have a private key.
func WithKeys(config *ir.Config) []*ir.Secret {
	return slices.DeleteFunc(slices.Clone(config.Secrets), func(s *ir.Secret) bool { return s.Key.None() })
}

// publicSecretsOf are those of a configuration without a private key.
func (a *V3Answers) publicSecretsOf(config *ir.Config) *xds.Set {
	if len(WithKeys(config)) == 0 {
		return a.Secrets
	}
	var all []*xds.Resource
	for _, s := range config.Secrets {
		if s.Key.None() {
			all = append(all, a.parts().Secret(s))
		}
	}
	return xds.NewSet(xds.SecretType, all)
}

// WantsKeys reports whether a poll for secrets, by name or for all, is one for a private
// key.
func WantsKeys(config *ir.Config, names []string) bool {
	return slices.ContainsFunc(WithKeys(config), func(s *ir.Secret) bool { return len(names) == 0 || slices.Contains(names, s.Name) })
}
