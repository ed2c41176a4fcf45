package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// secured gives a cluster whose TLS needs files of the proxy's machine a name
// that says so. An Envoy without the files refuses the cluster and keeps the one
// that it had: under the same name requests would go on through that, perhaps in
// plain text. Under another one they find no cluster, and get 503.
func secured(c *ir.Cluster) *ir.Cluster {
	tls := c.TLS
	if tls == nil || tls.CertificateFile == "" && tls.KeyFile == "" && tls.CAFile == "" {
		return c
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", []any{tls.CertificateFile, tls.KeyFile, tls.CAFile, tls.SNI, tls.SubjectAltNames})))
	out := *c
	out.Name += "|tls=" + hex.EncodeToString(sum[:4])
	return &out
}

// verifyNames has certificates of endpoints bear a name of the service's, where no
// rule has said which. They can be looked at only where a rule has them verified.
func verifyNames(c *ir.Cluster, t target) diag.List {
	svc := t.service
	if svc == nil || len(svc.SubjectAltNames) == 0 || c.EndpointKey == ir.Nobody {
		return nil
	}
	if c.TLS == nil || c.TLS.CAFile == "" {
		return diag.Warn(diag.NotHonoured, []diag.Ref{svc.Origin.Ref()},
			"subjectAltNames of %s are not looked at on port %d: no DestinationRule has proxies begin TLS there and verify certificates",
			svc.Hostname, t.port.Number)
	}
	if len(c.TLS.SubjectAltNames) == 0 {
		c.TLS.SubjectAltNames = svc.SubjectAltNames
	}
	return nil
}
