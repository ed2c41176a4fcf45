package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// secured gives a cluster whose TLS needs files on the proxy's machine, or secrets,
// a name that depends on them. Envoy rejects the cluster if a file is missing, and
// warms it while it waits for secrets; in both cases it keeps the cluster that it
// had. Under the same name, requests would continue through the old cluster,
// perhaps in plain text. Under a new name they find no cluster and get 503.
func secured(c *ir.Cluster) *ir.Cluster {
	tls := c.TLS
	if tls == nil || tls.CertificateFile == "" && tls.KeyFile == "" && tls.CAFile == "" && !tls.UsesSecrets() {
		return c
	}
	text, _ := json.Marshal(tls) // Strings and booleans always encode.
	sum := sha256.Sum256(text)
	out := *c
	out.Name += "|tls=" + hex.EncodeToString(sum[:4])
	return &out
}

// unseenNames reports names that certificates of a service's endpoints must have,
// if no proxy verifies them.
func unseenNames(c *ir.Cluster, t target) diag.List {
	svc := t.service
	if svc == nil || len(svc.SubjectAltNames) == 0 || c.EndpointKey == ir.Nobody || c.TLS != nil && c.TLS.Verifies() || c.MutualTLS != nil {
		return nil
	}
	return diag.Warn(diag.NotHonoured, []diag.Ref{svc.Origin.Ref()},
		"subjectAltNames of %s have no effect at port %d: no DestinationRule makes proxies use TLS there and verify certificates",
		svc.Hostname, t.port.Number).Coded(diag.TLSUnverified)
}
