package traffic_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// nestedGateways has servers of one port, and the hosts of some include hosts of others. The
// Gateways wide and alike ask the same of their clients. In the settings, CERTS stands for the folder of the certificates.
const nestedGateways = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: wide, namespace: default}
spec:
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: ["*.example.com", deep.in.example.com, alone.in.example.org]
    tls: {mode: SIMPLE, serverCertificate: CERTS/front.crt, privateKey: CERTS/front.key}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: precise, namespace: other}
spec:
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [secure.example.com, "*.in.example.com", "*.in.example.org"]
    tls: {mode: MUTUAL, serverCertificate: CERTS/front.crt, privateKey: CERTS/front.key, caCertificates: CERTS/client.crt}
  - port: {number: 443, name: tls, protocol: TLS}
    hosts: [passed.example.com]
    tls: {mode: PASSTHROUGH}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: alike, namespace: third}
spec:
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [served.example.com, unserved.example.com, "*.below.example.com"]
    tls: {mode: SIMPLE, serverCertificate: CERTS/client.crt, privateKey: CERTS/client.key}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: alike, namespace: third}
spec:
  hosts: [served.example.com, "*.x.below.example.com"]
  gateways: [alike]
  http: [{directResponse: {status: 204}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: wide, namespace: default}
spec:
  hosts: ["*.example.com"]
  gateways: [wide]
  http: [{directResponse: {status: 201}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: around, namespace: default}
spec:
  hosts: [secure.example.com, passed.example.com]
  gateways: [wide]
  http: [{directResponse: {status: 202}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: precise, namespace: other}
spec:
  hosts: [secure.example.com, "*.in.example.com"]
  gateways: [precise]
  http: [{directResponse: {status: 203}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: passed, namespace: other}
spec:
  hosts: [passed.example.com]
  gateways: [precise]
  tls: [{match: [{sniHosts: [passed.example.com]}], route: [{destination: {host: elsewhere.example, port: {number: 443}}}]}]
`

// TestRequestsStayAtTheServerOfTheirConnection checks that a client that connected by one TLS
// server gets nothing from a server of the port that asks its clients for something else,
// whatever host its requests name. From a server that asks for the same it gets what a client
// of that server gets.
//
// Observes Gateway servers[].hosts
func TestRequestsStayAtTheServerOfTheirConnection(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	for _, name := range []string{"front", "client"} {
		selfsigned.Write(t, filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	}
	client, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := compiledFor(t, mesh.DefaultSettings(), routerNode, strings.ReplaceAll(nestedGateways, "CERTS", dir))
	e := envoytest.Start(t, selfContained(t, cfg))
	const misdirected = http.StatusMisdirectedRequest
	for _, test := range []struct {
		name  string // sent in TLS
		hosts map[string]int
	}{
		{"www.example.com", map[string]int{
			"www.example.com":         201,
			"other.example.com:8443":  201,
			"secure.example.com":      misdirected,
			"SECURE.example.com":      misdirected,
			"secure.example.com.":     misdirected,
			"secure.example.com:443":  misdirected,
			"secure.example.com:9":    misdirected,
			"x.secure.example.com":    201,
			"x.in.example.com":        misdirected,
			"x.y.in.example.com":      misdirected,
			"in.example.com":          201,
			"deep.in.example.com":     201,
			"deep.in.example.com:443": 201,
			"passed.example.com":      misdirected,
			"x.in.example.org":        misdirected,
			"alone.in.example.org":    http.StatusNotFound,
			"unknown.example":         misdirected,
			"served.example.com":      204,
			"unserved.example.com":    http.StatusNotFound,
			"y.x.below.example.com":   204,
			"y.below.example.com":     http.StatusNotFound,
		}},
		{"unserved.example.com", map[string]int{
			"unserved.example.com": http.StatusNotFound,
			"served.example.com":   204,
			"www.example.com":      201,
			"secure.example.com":   misdirected,
		}},
		{"secure.example.com", map[string]int{
			"secure.example.com":   203,
			"x.in.example.com":     203,
			"deep.in.example.com":  misdirected,
			"www.example.com":      misdirected,
			"x.in.example.org":     http.StatusNotFound,
			"alone.in.example.org": misdirected,
		}},
		{"deep.in.example.com", map[string]int{"deep.in.example.com": 201, "x.in.example.com": misdirected}},
	} {
		for _, alpn := range []string{"http/1.1", "h2"} {
			conns := 0
			transport := &http.Transport{ForceAttemptHTTP2: alpn == "h2", MaxConnsPerHost: 1, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conns++
				conn := tls.Client(e.Dial("http_0.0.0.0_443"), &tls.Config{
					ServerName: test.name, InsecureSkipVerify: true, NextProtos: []string{alpn},
					GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
						if test.name == "secure.example.com" {
							return &client, nil
						}
						return &tls.Certificate{}, nil
					},
				})
				return conn, conn.HandshakeContext(ctx)
			}}
			for host, want := range test.hosts {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://edge/", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = host
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s through %s over %s: %d, want %d", host, test.name, alpn, resp.StatusCode, want)
				}
			}
			transport.CloseIdleConnections()
			if conns != 1 {
				t.Errorf("by way of %s over %s: %d connections, want one for all hosts", test.name, alpn, conns)
			}
		}
	}
}
