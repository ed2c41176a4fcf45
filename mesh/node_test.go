package mesh_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/mesh"
)

func TestNewNodeHasBounds(t *testing.T) {
	long := mesh.Labels{}
	for _, c := range "abcdefghijklmnopqrst" {
		long[strings.Repeat("d", 250)+"/"+strings.Repeat(string(c), 20)] = "v"
	}
	for _, c := range []struct {
		namespace string
		labels    mesh.Labels
		want      string
	}{
		{"Shop", nil, `namespace "Shop": `},
		{strings.Repeat("a", 100), nil, `namespace "` + strings.Repeat("a", 80) + `"…: `},
		{"", mesh.Labels{"a=b": ""}, `label name "a=b": `},
		{"", mesh.Labels{"a": "-"}, `value "-" of label a: `},
		{"", long, "labels of 5479 bytes, at most 4096 are allowed"},
	} {
		if _, err := mesh.NewNode("n", c.namespace, c.labels); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestStatedNamespace is that of the proxy, whatever its domain says.
func TestStatedNamespace(t *testing.T) {
	s := snapshot(t, `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: default}
spec: {outboundTrafficPolicy: {mode: ALLOW_ANY}}
`)
	for _, c := range []struct{ domain, namespace, want string }{
		{"default.svc.cluster.local", "", "default.svc.cluster.local"},
		{"default.svc.cluster.local", "default", "default.svc.cluster.local"},
		{"elsewhere", "default", "default.svc.cluster.local"},
		{"default.svc.cluster.local", "nowhere", "svc.cluster.local"},
	} {
		node, err := mesh.NewNode("sidecar~10.0.0.1~a~"+c.domain, c.namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := node.Proxy()
		if err != nil || s.TraitsOf(p).Domain != c.want {
			t.Errorf("%s in %q: %s, %v; want %s", c.domain, c.namespace, s.TraitsOf(p).Domain, err, c.want)
		}
	}
}

// TestOnlyLabelsThatAreAskedForMakeViews: who makes up labels, or states those
// that are asked of others, has the traits of those without.
func TestOnlyLabelsThatAreAskedForMakeViews(t *testing.T) {
	s := snapshot(t, `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: web, namespace: shop}
spec: {workloadSelector: {labels: {app: web}}, egress: [{hosts: [./*]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: shop}
spec:
  hosts: [a.shop.svc.cluster.local]
  http:
  - match: [{sourceLabels: {version: v1}}]
    route: [{destination: {host: b}}]
  - match: [{sourceLabels: {zone: z}, sourceNamespace: other}]
    route: [{destination: {host: b}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: edge, namespace: shop}
spec:
  hosts: [edge.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.2, labels: {istio: ingressgateway, app: edge}}]
`)
	for _, c := range []struct {
		node string
		want []mesh.Labels
	}{
		{"router~10.0.0.1~a~shop.svc.cluster.local labels=istio=ingressgateway,app=web,made=up", []mesh.Labels{{"istio": "ingressgateway"}}},
		{"router~10.0.0.1~a~shop.svc.cluster.local labels=istio=egressgateway", nil},
		{"router~10.0.0.2~a~shop.svc.cluster.local", []mesh.Labels{{"istio": "ingressgateway"}}},
		{"sidecar~10.0.0.1~a~shop.svc.cluster.local labels=istio=ingressgateway,app=web,version=v1,zone=z", []mesh.Labels{{"app": "web", "version": "v1"}}},
		{"sidecar~10.0.0.1~a~other.svc.cluster.local labels=app=web,version=v1,zone=z", []mesh.Labels{{"version": "v1", "zone": "z"}}},
		{"sidecar~10.0.0.1~a~other.svc.cluster.local labels=version=v2", nil},
		{"ingress~10.0.0.1~a~shop.svc.cluster.local labels=istio=ingressgateway,version=v1", nil},
	} {
		view := s.TraitsOf(meshgen.Proxy(t, c.node))
		if diff := cmp.Diff(c.want, view.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.node, diff)
		}
		id, _, _ := strings.Cut(c.node, " ")
		if bare := s.TraitsOf(meshgen.Proxy(t, id)); id != c.node && (bare.Key() == view.Key()) != (c.want == nil) {
			t.Errorf("%s: has the view of one without labels: %v", c.node, bare.Key() == view.Key())
		}
	}
}
