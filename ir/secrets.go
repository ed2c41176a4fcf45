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
	// Revoked are lists of revoked certificates of the authorities, "" for none. If there are
	// some, the issuer of each certificate that is shown must have one.
	Revoked string `json:",omitempty"`
	// Roots are the names of the authorities if they are the roots of the mesh, with commas.
	Roots   string `json:",omitempty"`
	Origins []diag.Ref
}

// The secrets of every workload, as Istio and SPIRE name them: its certificate, and the
// authorities of the mesh.
const (
	WorkloadCertificate = "default"
	MeshRoots           = "ROOTCA"
)

// LocalSDS says where on its own machine a proxy finds the certificate of its workload. At most
// one of the fields is set; the zero LocalSDS is nowhere.
type LocalSDS struct {
	// File has the secret WorkloadCertificate, and is read again when it is replaced. This
	// server sends MeshRoots.
	File string `json:",omitempty"`
	// Socket is that of an agent, which serves both secrets.
	Socket string `json:",omitempty"`
}

// String returns the kind and name, without contents.
func (s *Secret) String() string { return "secret " + s.Name }

// SecretNames returns the names of the secrets of this server that the configuration refers
// to, each once, sorted.
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
			add(t.secretNames()...)
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
		if slices.Contains(cluster.TLS.secretNames(), s.Name) || slices.Contains(cluster.MutualTLS.secretNames(), s.Name) {
			cluster.EachOrigin(visit)
		}
	}
}

// secretNames returns the names of the secrets of this server, and some that are "".
func (t *ServerTLS) secretNames() []string {
	if t == nil {
		return nil
	}
	var names []string
	for _, pair := range t.Others {
		names = append(names, pair.SecretName)
	}
	authorities := ""
	if t.Client != nil {
		authorities = t.Client.CASecretName
	}
	return append(names, t.SDS.others(t.SecretName, authorities)...)
}

// secretNames is that of servers.
func (t *ClientTLS) secretNames() []string {
	if t == nil {
		return nil
	}
	return t.SDS.others(t.SecretName, t.CASecretName)
}

// others returns those secrets that are not local.
func (l LocalSDS) others(certificate, authorities string) []string {
	switch {
	case l.Socket != "":
		return nil
	case l.File != "":
		return []string{authorities}
	}
	return []string{certificate, authorities}
}

// UsesSecrets reports whether certificates come from Secrets instead of files.
func (t *ServerTLS) UsesSecrets() bool {
	return t.SDS != LocalSDS{} || slices.ContainsFunc(t.secretNames(), func(name string) bool { return name != "" })
}

// UsesSecrets reports whether certificates come from Secrets instead of files.
func (t *ClientTLS) UsesSecrets() bool {
	return t != nil && (t.SecretName != "" || t.CASecretName != "")
}

// Verifies reports whether authorities verify endpoints.
func (t *ClientTLS) Verifies() bool { return t.CAFile != "" || t.CASecretName != "" }
