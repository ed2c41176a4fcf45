package traffic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// rewriting has rules of both APIs that rewrite a prefix without a final slash to a
// path with one, and a rule that refuses a path.
const rewriting = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop}
spec:
  hosts: [shop.example.com]
  addresses: [10.20.0.5]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.30.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  hosts: [shop.example.com]
  http:
  - match: [{uri: {prefix: /admin}}]
    directResponse: {status: 403}
  - match: [{uri: {prefix: /public}}]
    rewrite: {uri: /}
    route: [{destination: {host: shop.example.com}}]
  - match: [{uri: {prefix: /any.case}, ignoreUriCase: true}]
    rewrite: {uri: /a/.}
    route: [{destination: {host: shop.example.com}}]
  - match: [{uri: {prefix: /slash/}}]
    rewrite: {uri: /}
    route: [{destination: {host: shop.example.com}}]
  - match: [{uri: {prefix: /word}}]
    rewrite: {uri: /app}
    route: [{destination: {host: shop.example.com}}]
  - route: [{destination: {host: shop.example.com}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: old}
spec:
  hosts: [old.default.svc.cluster.local]
  addresses: [10.20.0.6]
  resolution: STATIC
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.30.0.2}]
---
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: old}
spec:
  destination: {name: old}
  match: {request: {headers: {uri: {prefix: /public}}}}
  rewrite: {uri: /}
`

// TestRewrittenPathsAreNormal checks that no rewrite of a prefix gives a service a path with a
// segment of dots, that other paths are rewritten as before, and that package explain says
// of each what the Envoy does.
//
// Observes VirtualService http[].rewrite.uri
func TestRewrittenPathsAreNormal(t *testing.T) {
	outside.Slow(t)
	cfg, _ := compiledFor(t, mesh.DefaultSettings(), callerNode, rewriting)
	e := envoytest.Start(t, selfContained(t, cfg))
	for _, c := range []struct{ host, path, want string }{
		{"shop.example.com", "/admin", "403"},
		{"shop.example.com", "/public../admin", "400"},
		{"shop.example.com", "/public..?x=1", "400"},
		{"shop.example.com", "/public.%2e/admin", "400"},
		{"shop.example.com", `/public..\admin`, "400"},
		{"shop.example.com", "/public./admin", "400"},
		{"shop.example.com", "/public.", "400"},
		{"shop.example.com", "/public", "/"},
		{"shop.example.com", "/public/admin", "//admin"},
		{"shop.example.com", "/publicity?x=../", "/ity?x=../"},
		{"shop.example.com", "/public.html", "/.html"},
		{"shop.example.com", "/public..html", "/..html"},
		{"shop.example.com", "/public.../admin", "/.../admin"},
		{"shop.example.com", "/public/../admin", "403"},
		{"shop.example.com", "/ANY.Case./admin", "400"},
		{"shop.example.com", "/ANYxCase./admin", "/ANYxCase./admin"},
		{"shop.example.com", "/any.CASE/admin", "/a/./admin"},
		{"shop.example.com", "/slash/..x", "/..x"},
		{"shop.example.com", "/slash/../admin", "403"},
		{"shop.example.com", "/word../admin", "/app../admin"},
		{"old", "/public../admin", "400"},
		{"old", "/publicity", "/ity"},
	} {
		ip := map[string]string{"shop.example.com": "10.20.0.5", "old": "10.20.0.6"}[c.host]
		answer := envoytest.Ask(t, e.Captured(ip, 80), envoytest.Get(c.host, c.path))
		got := fmt.Sprint(answer.Status)
		if answer.Status == http.StatusOK {
			got = strings.Fields(answer.Body)[2] // After the cluster and the host.
		}
		said := explain.Proxy{Config: cfg, IP: envoytest.ProxyIP}.Explain(explain.Request{
			Way: explain.Captured, Address: ip, Port: 80, Method: http.MethodGet, Scheme: "http", Host: c.host, Path: c.path,
		})
		explained := ""
		switch {
		case said.Answer != nil:
			explained = fmt.Sprint(said.Answer.Status)
		case said.Forward != nil:
			explained = said.Forward.Path
		}
		if got != c.want || explained != c.want {
			t.Errorf("%s: got %s, explained as %s, want %s", c.path, got, explained, c.want)
		}
	}
}
