package envoy_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilot-api/pilot-api/envoy"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// TestEnvoyAccepts gives every case and every bootstrap to a real Envoy, which
// builds all of it as if it had come by discovery.
func TestEnvoyAccepts(t *testing.T) {
	program := realEnvoy(t)
	dir := t.TempDir()
	writeCertificate(t, filepath.Join(dir, "testdata"))
	for _, tc := range bootstraps {
		if tc.options.API != envoy.V1 {
			t.Run("bootstrap/"+tc.name, func(t *testing.T) {
				tc.options.CAFile = filepath.Join(dir, "testdata", "tls.crt")
				text, err := envoy.Bootstrap(tc.options)
				if err != nil {
					t.Fatal(err)
				}
				accepts(t, program, dir, text)
			})
		}
	}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			accepts(t, program, dir, standalone(t, c.config))
		})
	}
}

// standalone is our own bootstrap with all resources of cfg in it, each route
// table inline in a listener of its own.
func standalone(t *testing.T, cfg *ir.Config) []byte {
	t.Helper()
	text, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: nodeID, Server: "http://127.0.0.1:8080"})
	if err != nil {
		t.Fatal(err)
	}
	b := parseBootstrap(t, text)
	b.DynamicResources = nil
	clusters, _ := v3.Clusters(cfg)
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, clusters...)
	b.StaticResources.Listeners, _ = v3.Listeners(cfg, proxyIP)
	b.StaticResources.Listeners = append(b.StaticResources.Listeners, tableListeners(cfg)...)
	return bootstrapText(t, b)
}

func bootstrapText(t *testing.T, b *bootstrapv3.Bootstrap) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tableListeners(cfg *ir.Config) []*listenerv3.Listener {
	inline := &ir.Config{Delay: cfg.Delay}
	for i, table := range cfg.RouteTables {
		inline.Listeners = append(inline.Listeners, &ir.Listener{
			IP: "127.0.0.1", Port: 20000 + i, HTTP: &ir.HTTPListener{Inline: table},
		})
	}
	out, _ := v3.Listeners(inline, proxyIP)
	return out
}

func accepts(t *testing.T, program, dir string, text []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--mode", "validate", "-c", file, "-l", "warning")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: Envoy refuses it: %s\n%s", err, out, text)
	} else if bytes.Contains(out, []byte("[warning]")) || bytes.Contains(out, []byte("[error]")) {
		t.Errorf("Envoy warns:\n%s", out)
	}
}

// realEnvoy is the program that `make tools` fetched, or the one on PATH.
func realEnvoy(t *testing.T) string {
	t.Helper()
	fetched, err := filepath.Abs("../.tools/envoy")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{fetched, "envoy"} {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	missing(t, "an envoy in .tools (make tools) or on PATH")
	return ""
}

func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"mesh.example"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
