package ir

import (
	"slices"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// Secret holds a certificate with its key, or authorities, for TLS. Listeners and
// clusters refer to it by name, so that it can change without them. Its String
// shows neither.
type Secret struct {
	Name           string
	Certificate    string
	Key            credential.Key
	CACertificates string

	Origins []diag.Ref
}

// String returns the kind and name, without contents.
func (s *Secret) String() string { return "secret " + s.Name }

// SecretNames returns the names that the configuration refers to, each once,
// sorted.
func (c *Config) SecretNames() []string {
	var names []string
	add := func(all ...string) {
		for _, name := range all {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	for _, l := range c.Listeners {
		add(l.TLS.secretNames()...)
		for _, chain := range l.Chains {
			add(chain.TLS.secretNames()...)
		}
	}
	for _, cluster := range c.Clusters {
		for _, t := range []*ClientTLS{cluster.TLS, cluster.MutualTLS} {
			if t != nil {
				add(t.SecretName, t.CASecretName)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// EachUser calls visit with the objects that a secret came from, and those of the
// listeners and clusters that refer to it. It visits an object as often as it is
// named.
func (c *Config) EachUser(s *Secret, visit func(diag.Ref)) {
	eachOf(s.Origins, visit)
	for _, l := range c.Listeners {
		if slices.Contains(l.TLS.secretNames(), s.Name) {
			l.EachOrigin(visit)
		}
		for _, chain := range l.Chains {
			if slices.Contains(chain.TLS.secretNames(), s.Name) {
				chain.eachOrigin(visit)
			}
		}
	}
	for _, cluster := range c.Clusters {
		if cluster.TLS.uses(s.Name) || cluster.MutualTLS.uses(s.Name) {
			cluster.EachOrigin(visit)
		}
	}
}

func (t *ServerTLS) secretNames() []string {
	if t == nil {
		return nil
	}
	names := []string{t.SecretName}
	for _, pair := range t.Others {
		names = append(names, pair.SecretName)
	}
	if t.Client != nil {
		names = append(names, t.Client.CASecretName)
	}
	return names
}

// UsesSecrets reports whether certificates come from Secrets instead of files.
func (t *ServerTLS) UsesSecrets() bool {
	return slices.ContainsFunc(t.secretNames(), func(name string) bool { return name != "" })
}

// UsesSecrets reports whether certificates come from Secrets instead of files.
func (t *ClientTLS) UsesSecrets() bool {
	return t != nil && (t.SecretName != "" || t.CASecretName != "")
}

func (t *ClientTLS) uses(secret string) bool {
	return t != nil && (t.SecretName == secret || t.CASecretName == secret)
}

// Verifies reports whether authorities verify endpoints.
func (t *ClientTLS) Verifies() bool { return t.CAFile != "" || t.CASecretName != "" }
