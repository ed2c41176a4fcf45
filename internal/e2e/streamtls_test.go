package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// TestSecretsOverMutualTLS: an Envoy that shows a certificate for its namespace is told
// secrets over an encrypted stream.
func TestSecretsOverMutualTLS(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	authority := selfsigned.NewAuthority(t, dir)
	authority.Issue(t, "127.0.0.1")
	authority.Issue(t, "edge.example", "spiffe://cluster.local/ns/default/sa/edge")
	w := openSecretsAs(t, []string{
		"--grpc-tls-cert", at("127.0.0.1.crt"), "--grpc-tls-key", at("127.0.0.1.key"), "--grpc-client-ca", at("authority.crt"),
	}, "--api", "delta", "--xds-ca", at("authority.crt"), "--xds-cert", at("edge.example.crt"), "--xds-key", at("edge.example.key"))
	w.issue("first", "first.example")
	w.write(fmt.Sprintf(secretsGateway, w.port))
	w.shows("first.example", "first.example")
	held := w.connect("first.example")
	w.issue("first", "rotated.example")
	w.shows("first.example", "rotated.example")
	w.serves(held)
}
