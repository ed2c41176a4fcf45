package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// The roots of the mesh are a secret of this server, which the listeners and clusters of all
// workloads name. Their certificates change under one name, and no connection ends. The name
// changes when certificates are revoked: a listener under the new name waits until it has the
// lists, and then ends the connections that it took before.

// nameOfRoots returns the present name of the secret with the roots.
func nameOfRoots(p *plan, _ none) string {
	if n := p.roots.Get(p.r, none{}).Revocations; n > 0 {
		return fmt.Sprintf("%s-%d", ir.MeshRoots, n)
	}
	return ir.MeshRoots
}

// isRoots reports whether a secret is that of the roots. No object has such a name.
func isRoots(name string) bool {
	return strings.HasPrefix(name, ir.MeshRoots) && !strings.Contains(name, "/")
}

// rootsSecret returns the roots under a name, or nil if there are none or the name is an
// earlier one.
func (rd *reader) rootsSecret(name string) *ir.Secret {
	roots := rd.roots.Get(rd.r, none{})
	if roots.Certificates == "" || name != rd.rootsName.Get(rd.r, none{}) {
		return nil
	}
	return &ir.Secret{Name: name, CACertificates: roots.Certificates, Revoked: roots.Revoked, Roots: roots.Names}
}

// filesOfWorkloads returns the certificates that the settings name for all workloads, with the
// first name of the roots.
func filesOfWorkloads(own mesh.WorkloadCertificates) clientFiles {
	out := clientFiles{Certificate: own.Certificate, sds: ir.LocalSDS{File: own.SDSFile, Socket: own.SDSSocket}}
	if out.sds != (ir.LocalSDS{}) {
		out.secret, out.caSecret = ir.WorkloadCertificate, ir.MeshRoots
	}
	return out
}

// namingRoots returns the certificates with the present name of the roots.
func (rd *reader) namingRoots(files clientFiles) clientFiles {
	if files.sds.File != "" {
		files.caSecret = rd.rootsName.Get(rd.r, none{})
	}
	return files
}

// withRoots sets the present name of the roots in the TLS of a listener.
func (c *writer) withRoots(l *ir.Listener) {
	l.TLS = c.tlsWithRoots(l.TLS)
	for i, chain := range l.Chains {
		if tls := c.tlsWithRoots(chain.TLS); tls != chain.TLS {
			renamed := *chain
			renamed.TLS = tls
			l.Chains = slices.Clone(l.Chains)
			l.Chains[i] = &renamed
		}
	}
}

func (c *writer) tlsWithRoots(tls *ir.ServerTLS) *ir.ServerTLS {
	if tls == nil || tls.SDS.File == "" || tls.Client == nil {
		return tls
	}
	name := c.plan.rootsName.Get(c.plan.r, none{})
	if tls.Client.CASecretName == name {
		return tls
	}
	out, client := *tls, *tls.Client
	client.CASecretName = name
	out.Client = &client
	return &out
}

// checkRoots reports an authority that cannot sign, and settings by which proxies would wait for
// roots that nobody has.
func (p *plan) checkRoots() {
	if lack := p.roots.Get(p.r, none{}).Lack; lack != "" {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.TLSUnmet, Field: "--ca",
			Message: "workloads get no certificates from this server, and those that they have will end: " + lack,
		})
	}
	if p.settings.WorkloadCertificates.SDSFile == "" || p.roots.Get(p.r, none{}).Certificates != "" {
		return
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.TLSUnmet, Field: "workloadCertificates.sdsFile",
		Message: "connections by mutual TLS fail: this server has no certificate authority whose roots it could send to proxies (--ca)",
	})
}
