package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// secured asks for TLS by a file that no machine has.
const secured = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec:
  host: reviews
  trafficPolicy:
    tls: {mode: SIMPLE, caCertificates: /nonexistent/ca.pem}
`

// TestTLSThatAnEnvoyCannotDo: an Envoy that lacks a file, and so refuses the
// cluster, does not go on in plain text through the one that it had.
func TestTLSThatAnEnvoyCannotDo(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	w := open(t, bookshop, proxyPort)
	file := filepath.Join(t.TempDir(), "secured.yaml")
	if err := os.WriteFile(file, []byte(secured), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status := func() int {
		answer, err := get("reviews")(0).send(ctx, w.client)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status
	}
	if got := status(); got != http.StatusOK {
		t.Fatalf("before: %d", got)
	}
	if _, err := w.Pilot.Istioctl(ctx, "create", "-f", file); err != nil {
		t.Fatal(err)
	}
	for status() == http.StatusOK { // Until ctx ends.
		continue
	}
	for range 50 {
		if got := status(); got != http.StatusServiceUnavailable {
			t.Fatalf("afterwards: %d", got)
		}
	}
	if _, err := w.Pilot.Istioctl(ctx, "delete", "-f", file); err != nil {
		t.Fatal(err)
	}
	for status() != http.StatusOK {
		continue
	}
}
