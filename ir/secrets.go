package ir

import (
	"slices"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// Secret is what TLS shows or verifies by, under the name by which listeners and
// clusters refer to it, so that it can change without them: a certificate with its
// key, or authorities. Its text has neither.
type Secret struct {
	Name           string
	Certificate    string
	Key            credential.Key
	CACertificates string

	Origins []diag.Ref
}

// String says what it is.
func (s *Secret) String() string { return "secret " + s.Name }

// SecretNames are what the configuration refers to, each once, sorted.
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
		if t := cluster.TLS; t != nil {
			add(t.SecretName, t.CASecretName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// EachUser visits the objects that a secret came from, and those of the listeners and
// clusters that refer to it, each as often as it is named.
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
		if t := cluster.TLS; t != nil && (t.SecretName == s.Name || t.CASecretName == s.Name) {
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

// UsesSecrets reports whether certificates come under names, and not from files.
func (t *ServerTLS) UsesSecrets() bool {
	return slices.ContainsFunc(t.secretNames(), func(name string) bool { return name != "" })
}

// UsesSecrets is that of ServerTLS.
func (t *ClientTLS) UsesSecrets() bool {
	return t != nil && (t.SecretName != "" || t.CASecretName != "")
}

// Verifies reports whether authorities vouch for endpoints.
func (t *ClientTLS) Verifies() bool { return t.CAFile != "" || t.CASecretName != "" }
