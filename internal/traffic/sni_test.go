package traffic_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// edgeServices has two services that end TLS themselves, and one without TLS.
const edgeServices = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: one, namespace: default}
spec:
  hosts: [one.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 10.1.0.1, labels: {version: v1}}, {address: 10.1.0.3, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: two, namespace: default}
spec:
  hosts: [two.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 10.1.0.2}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.4}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: one, namespace: default}
spec:
  host: one
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
`

// onePort has a Gateway with a PASSTHROUGH server and two certificates at one port.
const onePort = edgeServices + `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec:
  servers:
  - port: {number: 8443, name: tls, protocol: TLS}
    hosts: ["*.through.example"]
    tls: {mode: PASSTHROUGH}
  - port: {number: 8443, name: https-front, protocol: HTTPS}
    hosts: [./front.example]
    tls: {mode: SIMPLE, credentialName: front}
  - port: {number: 8443, name: https-side, protocol: HTTPS}
    hosts: ["*.example"]
    tls: {mode: SIMPLE, credentialName: side, maxProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-ECDSA-AES256-GCM-SHA384]}
  - port: {number: 8080, name: http, protocol: HTTP}
    hosts: ["*"]
    tls: {httpsRedirect: true}
  - port: {number: 8444, name: tls-end, protocol: TLS}
    hosts: ["*"]
    tls: {mode: SIMPLE, credentialName: front}
  - port: {number: 9000, name: tcp, protocol: TCP}
    hosts: ["*"]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: through, namespace: default}
spec:
  hosts: ["*.through.example"]
  gateways: [edge]
  tls:
  - match: [{port: 8443, sniHosts: [one.through.example]}]
    route: [{destination: {host: one}}]
  - match: [{sniHosts: ["*.through.example"]}]
    route: [{destination: {host: two}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: front, namespace: default}
spec:
  hosts: [front.example, side.example]
  gateways: [edge]
  http: [{route: [{destination: {host: web}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: raw, namespace: default}
spec:
  hosts: ["*"]
  gateways: [edge]
  tcp:
  - match: [{port: 9000}]
    route:
    - {destination: {host: one, subset: v1}, weight: 1}
    - {destination: {host: one, subset: v2}, weight: 3}
  - match: [{port: 8444}]
    route: [{destination: {host: web}}]
`

// TestServerNamesAtOnePort checks that a client reaches the service for the server name that it
// asks for, with the TLS settings of the server for that name.
//
// Observes VirtualService tls[].match[].sniHosts tls[].match[].port tls[].route[].destination.host tcp[].route[].weight
// Observes Gateway servers[].tls.mode servers[].tls.credentialName servers[].tls.maxProtocolVersion servers[].tls.cipherSuites servers[].hosts
func TestServerNamesAtOnePort(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	settings := mesh.DefaultSettings()
	settings.IngressCertificates = map[string]mesh.Certificate{}
	certificates := map[string][]byte{}
	for _, name := range []string{"front", "side"} {
		pair := mesh.Certificate{CertificateFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
		selfsigned.Write(t, pair.CertificateFile, pair.KeyFile)
		loaded, err := tls.LoadX509KeyPair(pair.CertificateFile, pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		settings.IngressCertificates[name], certificates[name] = pair, loaded.Certificate[0]
	}
	cfg, problems := compiledFor(t, settings, routerNode, onePort)
	if len(problems) > 0 {
		t.Error(problems)
	}
	cfg = selfContained(t, cfg)
	reached := map[string]*atomic.Int64{}
	for i, c := range cfg.Clusters {
		if strings.Contains(c.Name, "|tls") {
			cfg.Clusters[i], reached[c.Name] = tlsBackend(t, c.Name)
		}
	}
	e := envoytest.Start(t, cfg)

	for _, test := range []struct{ name, host, cert, want string }{
		{"one.through.example", "x", "", "out.one.default.svc.cluster.local|tls\n"},
		{"two.through.example", "x", "", "out.two.default.svc.cluster.local|tls\n"},
		{"a.b.through.example", "x", "", "out.two.default.svc.cluster.local|tls\n"},
		{"front.example", "front.example", "front", "out.web.default.svc.cluster.local|http front.example"},
		{"side.example", "side.example", "side", "out.web.default.svc.cluster.local|http side.example"},
		{"side.example", "front.example", "side", "421 Misdirected Request"},
		{"nobody", "front.example", "", ""},
		{"", "front.example", "", ""},
	} {
		var seen *x509.Certificate
		conn := tls.Client(e.Dial("http_0.0.0.0_8443"), &tls.Config{
			ServerName: test.name, InsecureSkipVerify: true, // What is shown is compared.
			VerifyConnection: func(s tls.ConnectionState) error {
				seen = s.PeerCertificates[0]
				if side := test.cert == "side"; side != (s.Version == tls.VersionTLS12 && s.CipherSuite == tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384) {
					t.Errorf("%s: version %x and cipher %x", test.name, s.Version, s.CipherSuite)
				}
				return nil
			},
		})
		answer := envoytest.Exchange(t, conn, envoytest.Get(test.host, "/"))
		if test.want == "" && answer != "" || !strings.Contains(answer, test.want) {
			t.Errorf("%+v: %q", test, answer)
		}
		if test.cert != "" && (seen == nil || string(seen.Raw) != string(certificates[test.cert])) {
			t.Errorf("%+v: another certificate is shown", test)
		}
	}
	t.Run("redirect", func(t *testing.T) {
		for _, host := range []string{"front.example", "nobody.example"} {
			answer := envoytest.Exchange(t, e.Dial("http_0.0.0.0_8080"), envoytest.Get(host, "/x?q=1"))
			if !strings.Contains(answer, "301 Moved Permanently") || !strings.Contains(answer, "location: https://"+host+"/x?q=1\r\n") {
				t.Errorf("%s: %q", host, answer)
			}
		}
	})
	t.Run("TLS ends before TCP", func(t *testing.T) {
		conn := tls.Client(e.Dial("tcp_0.0.0.0_8444"), &tls.Config{InsecureSkipVerify: true})
		if answer := envoytest.Exchange(t, conn, envoytest.Get("raw", "/")); !strings.Contains(answer, "out.web.default.svc.cluster.local|http raw /") {
			t.Errorf("%q", answer)
		}
	})
	t.Run("weights", func(t *testing.T) {
		const all = 200
		for range all {
			conn := tls.Client(e.Dial("tcp_0.0.0.0_9000"), &tls.Config{InsecureSkipVerify: true})
			if answer := envoytest.Exchange(t, conn, envoytest.Get("raw", "/")); !strings.Contains(answer, "200 OK") {
				t.Fatalf("%q", answer)
			}
		}
		one := reached["out.one.default.svc.cluster.local|tls|version=v1|v1"].Load()
		two := reached["out.one.default.svc.cluster.local|tls|version=v2|v2"].Load()
		// A quarter, within six deviations.
		if one+two != all || one < 13 || one > 87 {
			t.Errorf("of %d connections %d and %d came, want about a quarter and the others", all, one, two)
		}
	})
}

// tlsBackend returns a cluster and the number of requests to its endpoint. The endpoint uses
// TLS and answers with the cluster's name.
func tlsBackend(t *testing.T, name string) (*ir.Cluster, *atomic.Int64) {
	t.Helper()
	count := &atomic.Int64{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		_, _ = w.Write([]byte(name + "\n"))
	}))
	t.Cleanup(server.Close)
	return envoytest.Cluster(name, server.Listener.Addr()), count
}
