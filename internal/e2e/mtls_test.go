package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/e2e/bridge"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

const mutualTLS = "destination-rule-all-mtls"

const workloadCertificates = `
workloadCertificates: {certificateFile: /etc/certs/cert-chain.pem, keyFile: /etc/certs/key.pem, caFile: /etc/certs/root-cert.pem}
`

// TestMutualTLS: what the rules for mutual TLS come to is taken by Envoy, in
// either API. It is not routed by, since its certificates are in a folder of
// the machine.
func TestMutualTLS(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	envoy := outside.Tool(t, "envoy")
	settings := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(settings, []byte(workloadCertificates), 0o600); err != nil {
		t.Fatal(err)
	}
	pilot := openPilot(t, "--data-dir", t.TempDir(), "--mesh-config", settings)
	args := []string{"create", "-f", bookinfo.Services}
	for _, rule := range []string{mutualTLS, "virtual-service-reviews-50-v3"} {
		args = append(args, "-f", filepath.Join(bookinfo.Rules, rule+".yaml"))
	}
	if _, err := pilot.Istioctl(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	if err := pilot.Published(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("v3", func(t *testing.T) { takeClusters(t, pilot, envoy, clustersV3(t, pilot)) })
	t.Run("v1", func(t *testing.T) { takeClusters(t, pilot, envoy, clustersV1(t, pilot)) })
}

func clustersV3(t *testing.T, pilot *Pilot) []byte {
	t.Helper()
	text, err := pilot.discover(t.Context(), envoyNode{ID: node}, "clusters", "")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func clustersV1(t *testing.T, pilot *Pilot) []byte {
	t.Helper()
	old, err := pilot.Istioctl(t.Context(), "bootstrap", node, "--api", "v1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b, err := bridge.New(old, "e2e", node, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "clusters.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// takeClusters gives Envoy the clusters of an answer as if it had them from the
// start, with certificates where they are to be.
func takeClusters(t *testing.T, pilot *Pilot, envoy string, answer []byte) {
	t.Helper()
	certs := t.TempDir()
	selfsigned.Write(t, filepath.Join(certs, "root-cert.pem"), filepath.Join(certs, "root-key.pem"))
	selfsigned.Write(t, filepath.Join(certs, "cert-chain.pem"), filepath.Join(certs, "key.pem"))
	answer = bytes.ReplaceAll(answer, []byte("/etc/certs"), []byte(certs))
	for _, name := range []string{"root-cert.pem", "cert-chain.pem", "key.pem"} {
		if n := bytes.Count(answer, []byte(filepath.Join(certs, name))); n < 5 {
			t.Errorf("%s is named %d times; want it for each service, and for two versions of reviews\n%s", name, n, answer)
		}
	}
	if _, err := outside.Validate(t.Context(), envoy, "", withClusters(t, pilot, answer)); err != nil {
		t.Errorf("Envoy refuses the clusters: %v\n%s", err, answer)
	}
}

// withClusters is istioctl's bootstrap with the clusters, and without discovery.
func withClusters(t *testing.T, pilot *Pilot, answer []byte) []byte {
	t.Helper()
	text, err := pilot.Istioctl(t.Context(), "bootstrap", node, "--api", "rest")
	if err != nil {
		t.Fatal(err)
	}
	var bootstrap map[string]any
	if err := yaml.Unmarshal(text, &bootstrap); err != nil {
		t.Fatal(err)
	}
	var offered struct{ Resources []map[string]any }
	if err := json.Unmarshal(answer, &offered); err != nil {
		t.Fatal(err)
	}
	delete(bootstrap, "dynamic_resources")
	static := bootstrap["static_resources"].(map[string]any)
	for _, c := range offered.Resources {
		delete(c, "@type")
		static["clusters"] = append(static["clusters"].([]any), c)
	}
	if text, err = yaml.Marshal(bootstrap); err != nil {
		t.Fatal(err)
	}
	return text
}
