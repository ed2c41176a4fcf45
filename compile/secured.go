package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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
