package evaluator_test

import (
	"net/netip"
	"testing"

	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/mesh"
)

const twoPorts = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec:
  hosts: [a.default.svc.cluster.local]
  addresses: [10.0.0.1, "fd00::1"]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9080, name: http-more, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: out}
spec:
  hosts: ["*.example.com"]
  location: MESH_EXTERNAL
  resolution: NONE
  ports: [{number: 9080, name: http, protocol: HTTP}]
`

// TestPortOfHost: captured requests were going to a port, and go there whatever
// port their Host header says. At the proxy port there is nothing else to go by.
func TestPortOfHost(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.ProxyHTTPPort = 15002
	node, err := mesh.ParseProxy("sidecar~10.1.0.9~x~default.svc.cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	s, err := world{settings, decoded(t, twoPorts), node}.spell(t)
	if err != nil {
		t.Fatal(err)
	}
	proxyPort := evaluator.Request{Destination: netip.MustParseAddrPort("127.0.0.1:15002")}
	at := func(address string) evaluator.Request {
		return evaluator.Request{Destination: netip.MustParseAddrPort(address), Captured: true}
	}
	for _, test := range []struct {
		request evaluator.Request
		host    string
		want    string // a cluster, "" for 404
	}{
		{at("10.0.0.1:9080"), "a", "out.a.default.svc.cluster.local|http-more"},
		{at("10.0.0.1:9080"), "a:9080", "out.a.default.svc.cluster.local|http-more"},
		{at("10.0.0.1:9080"), "a:80", "out.a.default.svc.cluster.local|http-more"},
		{at("10.0.0.1:9080"), "a.default.svc.cluster.local:80", "out.a.default.svc.cluster.local|http-more"},
		{at("10.0.0.1:80"), "A:9080", "out.a.default.svc.cluster.local|http"},
		{at("10.0.0.1:9080"), "10.0.0.1:80", "out.a.default.svc.cluster.local|http-more"},
		{at("10.0.0.1:9080"), "b:80", "PassthroughCluster"},
		{at("192.0.2.1:9080"), "www.example.com:80", "out.*.example.com|external-HTTP-9080"},
		{proxyPort, "a", "out.a.default.svc.cluster.local|http"},
		{proxyPort, "a:80", "out.a.default.svc.cluster.local|http"},
		{proxyPort, "a:9080", "out.a.default.svc.cluster.local|http-more"},
		{proxyPort, "a:81", ""},
	} {
		test.request.Method, test.request.Path, test.request.Host = "GET", "/", test.host
		out := s.v3.Evaluate(test.request)
		got := ""
		if len(out.Shares) == 1 {
			got = out.Shares[0].Cluster
		}
		if got != test.want || got == "" && out.Status != 404 {
			t.Errorf("%s at %s: %q %d, want %q", test.host, test.request.Destination, got, out.Status, test.want)
		}
	}
}
