package traffic_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// mutualGateway has a host that demands certificates of its clients. At port 9443 it shares
// the port with a host that does not.
const mutualGateway = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec:
  servers:
  - port: {number: 8443, name: https, protocol: HTTPS}
    hosts: [web.example]
    tls: {mode: MUTUAL, credentialName: front}
  - port: {number: 9443, name: https-simple, protocol: HTTPS}
    hosts: [open.example]
    tls: {mode: SIMPLE, credentialName: front}
  - port: {number: 9443, name: https-mutual, protocol: HTTPS}
    hosts: [web.example]
    tls: {mode: MUTUAL, credentialName: front}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example, open.example]
  gateways: [edge]
  http: [{route: [{destination: {host: web}}]}]
`

// TestMutualGatewayDemandsACertificate checks that a MUTUAL server refuses a client without a
// certificate or with an unknown one, even if the client connects by another server of the
// port.
//
// Observes Gateway servers[].tls.mode servers[].tls.caCertificates
func TestMutualGatewayDemandsACertificate(t *testing.T) {
	outside.Slow(t)
	pairs := map[string]tls.Certificate{"none": {}}
	dir := t.TempDir()
	for _, name := range []string{"front", "client", "stranger"} {
		certificate, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		selfsigned.Write(t, certificate, key)
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		pairs[name] = pair
	}
	front := mesh.Certificate{
		CertificateFile: filepath.Join(dir, "front.crt"), KeyFile: filepath.Join(dir, "front.key"),
		CAFile: filepath.Join(dir, "client.crt"),
	}
	cfg, _ := routerConfig(t, front, mutualGateway)
	e := envoytest.Start(t, selfContained(t, cfg))
	for _, test := range []struct {
		listener, name, host, client, want string
	}{
		{"http_0.0.0.0_8443", "", "web.example", "client", "200 OK"},
		{"http_0.0.0.0_8443", "", "web.example", "none", ""},
		{"http_0.0.0.0_8443", "", "web.example", "stranger", ""},
		{"http_0.0.0.0_9443", "open.example", "open.example", "none", "200 OK"},
		{"http_0.0.0.0_9443", "open.example", "open.example:9443", "none", "200 OK"},
		{"http_0.0.0.0_9443", "open.example", "open.example:30443", "none", "200 OK"},
		{"http_0.0.0.0_9443", "web.example", "web.example", "client", "200 OK"},
		{"http_0.0.0.0_9443", "WEB.example", "web.example", "client", "200 OK"},
		{"http_0.0.0.0_9443", "web.example", "web.example", "none", ""},
		{"http_0.0.0.0_9443", "web.example", "web.example", "stranger", ""},
		// A client that connected by the SIMPLE server gets nothing from the MUTUAL one.
		{"http_0.0.0.0_9443", "open.example", "web.example:30443", "none", "421 Misdirected Request"},
		{"http_0.0.0.0_9443", "open.example", "web.example", "none", "421 Misdirected Request"},
		{"http_0.0.0.0_9443", "other.example", "open.example", "none", ""},
		{"http_0.0.0.0_9443", "", "open.example", "none", ""},
	} {
		conn := tls.Client(e.Dial(test.listener), &tls.Config{
			ServerName:         test.name,
			InsecureSkipVerify: true, // The test is about the other direction.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				pair := pairs[test.client]
				return &pair, nil
			},
		})
		answer := envoytest.Exchange(t, conn, envoytest.Get(test.host, "/"))
		if test.want == "" && answer != "" || !strings.Contains(answer, test.want) {
			t.Errorf("%+v: %q", test, answer)
		}
	}
}

// TestMutualGatewayWithoutAuthoritiesIsClosed checks that a proxy does not open the port of a
// MUTUAL server that has no certificates of authorities to verify clients with.
func TestMutualGatewayWithoutAuthoritiesIsClosed(t *testing.T) {
	cfg, problems := routerConfig(t, mesh.Certificate{CertificateFile: "/a.crt", KeyFile: "/a.key"}, mutualGateway)
	for _, l := range cfg.Listeners {
		if l.Port == 8443 {
			t.Errorf("the port is open: %+v", l.TLS)
		}
	}
	for _, table := range cfg.RouteTables {
		for _, host := range table.VirtualHosts {
			if strings.Contains(host.Name, "web.example") {
				t.Errorf("served in table %s: %s", table.Name, host.Name)
			}
		}
	}
	if text := problems.Error(); strings.Count(text, "no authorities verify clients") != 2 {
		t.Errorf("want a problem for each MUTUAL server:\n%s", text)
	}
}

// routerConfig returns the configuration of a router in a mesh with the secret "front".
func routerConfig(t *testing.T, front mesh.Certificate, text string) (*ir.Config, diag.List) {
	t.Helper()
	settings := mesh.DefaultSettings()
	settings.IngressCertificates = map[string]mesh.Certificate{"front": front}
	return compiledFor(t, settings, routerNode, text)
}
