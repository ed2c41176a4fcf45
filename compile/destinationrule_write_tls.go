package compile

import (
	"cmp"
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// unmet is a TLS setting that cannot be met, and why. The reason is "" if schema
// has already reported it. The zero value means none.
type unmet struct {
	field string
	absence
}

// clientTLS returns nil for plain text.
func (w policyWriter) clientTLS(tls *networking.ClientTLSSettings) (*ir.ClientTLS, unmet) {
	if tls.GetMode() == networking.ClientTLSSettings_DISABLE {
		return nil, unmet{}
	}
	files, lack := w.reader.clientFiles(tls, w.namespace)
	if lack != (unmet{}) {
		return nil, lack
	}
	out := files.clientTLS()
	out.SNI = tls.GetSni()
	if out.Verifies() {
		out.SubjectAltNames = namesToVerify(tls, w.target.service)
	}
	if tls.GetMode() != networking.ClientTLSSettings_ISTIO_MUTUAL {
		w.nameEndpoints(out)
	} else if !w.pilot.DestinationRuleTLS {
		out.ALPN = offered(w.http, w.HTTP2)
	}
	return out, unmet{}
}

// nameEndpoints sets the name to ask for, and to verify, if nothing else sets it:
// the name in the request, or that of the host. The authorities of a system vouch
// for anybody, so with them a name is always verified.
func (w policyWriter) nameEndpoints(tls *ir.ClientTLS) {
	verified := tls.Verifies() && len(tls.SubjectAltNames) == 0
	if tls.SNI == "" {
		tls.AutoSNI = w.http && !w.pilot.DestinationRuleTLS
		tls.AutoSAN = tls.AutoSNI && verified
		if !strings.Contains(w.target.host, "*") {
			tls.SNI = w.target.host
		}
	}
	if verified && !tls.AutoSAN && tls.SNI != "" && tls.CAFile != "" && tls.CAFile == w.settings.SystemRootsFile {
		tls.SubjectAltNames = []string{tls.SNI}
	}
}

// namesToVerify returns the names of which an endpoint must have one, if any are
// set.
func namesToVerify(tls *networking.ClientTLSSettings, svc *mesh.Service) []string {
	if names := tls.GetSubjectAltNames(); len(names) > 0 || svc == nil {
		return names
	}
	return svc.SubjectAltNames
}

// clientFiles are certificates in files or in named secrets.
type clientFiles struct {
	mesh.Certificate
	secret, caSecret string
	sds              ir.LocalSDS // of secret
}

func (f clientFiles) clientTLS() *ir.ClientTLS {
	return &ir.ClientTLS{
		CertificateFile: f.CertificateFile, KeyFile: f.KeyFile, SecretName: f.secret, SDS: f.sds,
		CAFile: f.CAFile, CASecretName: f.caSecret, CRLFile: f.CRLFile,
	}
}

func (f clientFiles) verifies() bool { return f.CAFile != "" || f.caSecret != "" }

// clientFiles returns the certificates that proxy and endpoint use, according to a
// rule in a namespace. Without authorities nothing is verified.
func (rd *reader) clientFiles(tls *networking.ClientTLSSettings, namespace string) (clientFiles, unmet) {
	if tls.GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL {
		files, lack := workloadFiles(rd.settings)
		return rd.namingRoots(files), lack
	}
	files, lack := rd.ownFiles(tls, namespace)
	if lack != (unmet{}) {
		return files, lack
	}
	switch {
	case tls.GetMode() != networking.ClientTLSSettings_MUTUAL:
		files.CertificateFile, files.KeyFile, files.secret = "", "", ""
	case files.secret == "" && (files.CertificateFile == "" || files.KeyFile == ""):
		return files, unmet{"mode", absence{why: "MUTUAL needs a certificate with its key"}}
	}
	if tls.GetInsecureSkipVerify().GetValue() {
		files.CAFile, files.caSecret = "", ""
	}
	switch unverified := !files.verifies(); {
	case unverified && len(tls.GetSubjectAltNames()) > 0:
		return files, unmet{"subjectAltNames", absence{why: "names need authorities that verify them"}}
	case schema.RevokesUnverified(tls):
		return files, unmet{"caCrl", absence{}} // Schema reports it.
	case unverified:
		files.CRLFile = ""
	}
	return files, unmet{}
}

// ownFiles returns the files that the settings name, or those of a secret.
func (rd *reader) ownFiles(tls *networking.ClientTLSSettings, namespace string) (clientFiles, unmet) {
	settings, verified := rd.settings, !tls.GetInsecureSkipVerify().GetValue()
	if secret := tls.GetCredentialName(); secret != "" {
		own, ok := settings.ClientCertificates[secret]
		if !ok {
			return rd.filesOfSecret(secretName(namespace, secret), verified)
		}
		files := clientFiles{Certificate: own}
		if verified && files.CAFile == "" {
			return files, unmet{"credentialName", absence{why: fmt.Sprintf("clientCertificates of the mesh settings has no caFile for %q to verify endpoints by", secret)}}
		}
		return files, unmet{}
	}
	files := clientFiles{Certificate: mesh.Certificate{
		CertificateFile: tls.GetClientCertificate(), KeyFile: tls.GetPrivateKey(), CAFile: tls.GetCaCertificates(), CRLFile: tls.GetCaCrl(),
	}}
	if files.CAFile != "" || settings.V1Compatibility.DestinationRuleTLS {
		return files, unmet{}
	}
	files.CAFile = settings.SystemRootsFile
	if verified && files.CAFile == "" {
		return files, unmet{"caCertificates", absence{why: "no authorities verify the endpoints: name a file with authorities, or systemRootsFile in the mesh settings"}}
	}
	return files, unmet{}
}

// filesOfSecret returns the contents of a secret. The secret must have authorities
// if endpoints are verified.
func (rd *reader) filesOfSecret(name string, verified bool) (files clientFiles, lack unmet) {
	const setting = "clientCertificates"
	if l := rd.lackOfSecret(name, setting); l.why != "" {
		return files, unmet{"credentialName", l}
	}
	if verified {
		if l := rd.lackOfAuthorities(name, setting); l.why != "" {
			return files, unmet{"credentialName", l}
		}
		files.caSecret = name + authorities
	}
	if rd.lackOfPair(name, setting).why == "" {
		files.secret = name
	}
	return files, unmet{}
}

// pilotWorkloadFiles are the paths of a workload's identity under Pilot.
var pilotWorkloadFiles = mesh.Certificate{
	CertificateFile: "/etc/certs/cert-chain.pem", KeyFile: "/etc/certs/key.pem", CAFile: "/etc/certs/root-cert.pem",
}

// workloadFiles returns the certificates of a workload's own identity.
func workloadFiles(settings *mesh.Settings) (clientFiles, unmet) {
	own := settings.WorkloadCertificates
	if settings.V1Compatibility.DestinationRuleTLS {
		own = cmp.Or(own, mesh.WorkloadCertificates{Certificate: pilotWorkloadFiles})
	}
	if own.None() {
		return clientFiles{}, unmet{"mode", absence{why: "ISTIO_MUTUAL uses the certificates of workloads, and workloadCertificates of the mesh settings names none"}}
	}
	return filesOfWorkloads(own), unmet{}
}

// checkTLS reports TLS settings that cannot be met, so that the cluster is closed,
// and settings that leave endpoints unverified.
func (d *check) checkTLS(rule *destinationRule, at string, tls *networking.ClientTLSSettings, svc *mesh.Service) {
	mode := tls.GetMode()
	if mode == networking.ClientTLSSettings_DISABLE {
		return
	}
	files, lack := d.clientFiles(tls, rule.ref.Namespace)
	own := mode != networking.ClientTLSSettings_ISTIO_MUTUAL
	switch {
	case lack.field != "" && lack.why == "":
	case lack.field != "":
		d.report(lack.problem(rule.ref, at+".tls."+lack.field, "requests are answered with 503: "))
	case own && !files.verifies() && !tls.GetInsecureSkipVerify().GetValue():
		d.notHonoured(diag.TLSUnverified, rule.ref, at+".tls.caCertificates", "the endpoints are not verified; "+
			switchHint("destinationRuleTLS", "they are, by the authorities of the proxy's system"))
	case own && files.verifies() && files.CAFile != d.settings.SystemRootsFile && tls.GetSni() != "" && len(namesToVerify(tls, svc)) == 0:
		d.notHonoured(diag.TLSUnverified, rule.ref, at+".tls.sni", "an endpoint may have a certificate for any name, because subjectAltNames is empty; without sni, the certificate must be for the host that a request names")
	}
}
