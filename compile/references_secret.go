package compile

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// gatewaySecrets adds references to the secrets that the servers of a Gateway name.
func (r *referrals) gatewaySecrets(gw *gateway) {
	for i, server := range gw.spec.GetServers() {
		tls, at := server.GetTls(), fmt.Sprintf("spec.servers[%d].tls.", i)
		ownAuthorities := tls.GetCaCertificates() != "" || tls.GetCaCertCredentialName() != ""
		verifies := !ownAuthorities && (tls.GetMode() == networking.ServerTLSSettings_MUTUAL || tls.GetMode() == networking.ServerTLSSettings_OPTIONAL_MUTUAL)
		r.secret(gw.ref, at+"credentialName", tls.GetCredentialName(), r.settings.IngressCertificates, verifies)
		for n, name := range tls.GetCredentialNames() {
			r.secret(gw.ref, fmt.Sprintf("%scredentialNames[%d]", at, n), name, r.settings.IngressCertificates, verifies)
		}
		r.secret(gw.ref, at+"caCertCredentialName", tls.GetCaCertCredentialName(), r.settings.IngressCertificates, true)
	}
}

// clientSecret adds a reference to the secret that TLS to endpoints uses.
func (r *referrals) clientSecret(from diag.Ref, at string, tls *networking.ClientTLSSettings) {
	r.secret(from, at+".tls.credentialName", tls.GetCredentialName(), r.settings.ClientCertificates, !tls.GetInsecureSkipVerify().GetValue())
}

// secret adds references to a secret and, if it verifies peers, to the separate
// secret with its authorities. A name that stands for files is not an object.
func (r *referrals) secret(from diag.Ref, field, name string, files map[string]mesh.Certificate, verifies bool) {
	full := secretName(from.Namespace, name)
	if _, inFiles := files[name]; name == "" || inFiles || r.inFiles(full) {
		return
	}
	there := len(r.secretNamed.under(&r.plan.reader, full)) > 0
	r.add(diag.Reference{From: from, Field: field, Names: "secret " + full, To: refOf("Secret", full), Missing: !there})
	pair, _ := r.pairNamed(full)
	if beside := full + schema.CACertSuffix; verifies && pair.CACertificates == "" && len(r.secretNamed.under(&r.plan.reader, beside)) > 0 {
		r.add(diag.Reference{From: from, Field: field, Names: "authorities " + beside, To: refOf("Secret", beside)})
	}
}
