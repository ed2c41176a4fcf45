package compiled

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// maxScopes bounds the sets of secrets that a view keeps by scope. Proxies of one view are
// of one namespace, except that all namespaces without objects share a view.
const maxScopes = 16

// KeyScope is the set of Secrets whose private keys a connection may receive. The zero
// KeyScope has none.
type KeyScope struct {
	all       bool
	namespace string
}

// AllKeys has every Secret. It is the scope of a connection that only the server's own user
// can open, or whose certificate is valid for every namespace.
func AllKeys() KeyScope { return KeyScope{all: true} }

// KeysOfNamespace has the Secrets of one namespace.
func KeysOfNamespace(namespace string) KeyScope { return KeyScope{namespace: namespace} }

// Allows reports whether the scope has a secret. A secret without a private key is in
// every scope.
func (k KeyScope) Allows(s *ir.Secret) bool {
	if k.all || s.Key.None() {
		return true
	}
	namespace, _, _ := strings.Cut(s.Name, "/")
	return k.namespace != "" && namespace == k.namespace
}

// SecretsWithin returns the secrets that a scope allows. Streams of one view and scope
// share the set. It is nil for clients of gRPC, which are sent no secrets.
func (a *V3Answers) SecretsWithin(scope KeyScope) *xds.Set {
	config := a.View.Config
	if a.proxyless != nil || !slices.ContainsFunc(config.Secrets, func(s *ir.Secret) bool { return !scope.Allows(s) }) {
		return a.Secrets
	}
	if shared, ok := a.scopedSecrets.Get(scope.namespace); ok {
		return shared
	}
	var allowed []*xds.Resource
	for _, s := range config.Secrets {
		if scope.Allows(s) {
			allowed = append(allowed, a.parts().Secret(s))
		}
	}
	return a.scopedSecrets.Put(scope.namespace, xds.NewSet(xds.SecretType, allowed))
}

// SecretsBeside returns secrets together with others that are in no configuration.
func (v *View) SecretsBeside(set *xds.Set, others []*ir.Secret) *xds.Set {
	all := slices.Clone(set.Sorted)
	for _, s := range others {
		all = append(all, v.Encoder.V3.Secret(s))
	}
	return xds.NewSet(xds.SecretType, all)
}

// WithKeys returns the secrets of a configuration that have a private key.
func WithKeys(config *ir.Config) []*ir.Secret {
	return slices.DeleteFunc(slices.Clone(config.Secrets), func(s *ir.Secret) bool { return s.Key.None() })
}

// WantsKeys reports whether a poll for secrets, by name or for all, asks for a private key.
func WantsKeys(config *ir.Config, names []string) bool {
	return slices.ContainsFunc(WithKeys(config), func(s *ir.Secret) bool { return len(names) == 0 || slices.Contains(names, s.Name) })
}
