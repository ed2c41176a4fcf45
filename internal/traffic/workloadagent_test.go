package traffic_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// agent serves the secrets of a workload on a socket, as SPIRE's agent and Istio's do.
type agent struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer

	secrets map[string]*tlsv3.Secret
}

// StreamSecrets answers each request that is no acknowledgement.
func (a *agent) StreamSecrets(s secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if r.GetResponseNonce() != "" {
			continue
		}
		answer := &discoveryv3.DiscoveryResponse{TypeUrl: r.GetTypeUrl(), VersionInfo: "1", Nonce: "1"}
		for _, name := range r.GetResourceNames() {
			one, err := anypb.New(a.secrets[name])
			if err != nil {
				return err
			}
			answer.Resources = append(answer.Resources, one)
		}
		if err := s.Send(answer); err != nil {
			return err
		}
	}
}

// startAgent serves the secrets of a workload, and returns its socket.
func startAgent(t *testing.T, c meshCertificates, workload string) string {
	t.Helper()
	text := func(name string) *corev3.DataSource {
		content, err := os.ReadFile(c.file(name))
		if err != nil {
			t.Fatal(err)
		}
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: content}}
	}
	a := &agent{secrets: map[string]*tlsv3.Secret{
		"default": {Name: "default", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: text(workload + ".crt"), PrivateKey: text(workload + ".key")}}},
		"ROOTCA":  {Name: "ROOTCA", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: text("authority.crt")}}},
	}}
	dir, err := os.MkdirTemp("", "agent") // A path of t.TempDir may be too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "agent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	secretv3.RegisterSecretDiscoveryServiceServer(server, a)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return socket
}

// TestCertificatesOfAnAgent checks that a workload takes connections by the certificate and the
// roots of an agent on its machine, through a real Envoy.
func TestCertificatesOfAnAgent(t *testing.T) {
	outside.Slow(t)
	certificates := newMeshCertificates(t)
	settings := mesh.DefaultSettings()
	settings.WorkloadCertificates.SDSSocket = startAgent(t, certificates, "shop")
	e := startCompiled(t, settings, callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: caller}
spec:
  hosts: [caller.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.7}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: caller}
spec:
  ingress:
  - {port: {number: 80, protocol: HTTP, name: a}, defaultEndpoint: '127.0.0.1:%d'}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default}
spec: {mtls: {mode: STRICT}}
`, answering(t, "app")))
	for caller, want := range map[string]bool{"caller": true, "stranger": false, "": false} {
		settings := &tls.Config{InsecureSkipVerify: true}
		if caller != "" {
			settings.Certificates = []tls.Certificate{certificates.pair(t, caller)}
		}
		got := firstLine(tls.Client(e.Captured("10.0.0.7", 80), settings), envoytest.Get("shop", "/"))
		if strings.HasPrefix(got, "HTTP/1.1 200") != want {
			t.Errorf("%q with an agent: %q, want an answer: %v", caller, got, want)
		}
	}
}
