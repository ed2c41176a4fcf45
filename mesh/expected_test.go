package mesh_test

import (
	"slices"
	"testing"
)

func TestExpectedProxies(t *testing.T) {
	s := snapshot(t, `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec: {selector: {app: edge}, servers: [{port: {name: http, number: 80, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: same, namespace: edge}
spec: {selector: {app: edge}, servers: [{port: {name: http, number: 81, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: config.istio.io/v1alpha2
kind: IngressRule
metadata: {name: in, namespace: shop}
spec: {destination: {service: reviews.shop.svc.cluster.local}, port: 80}
---
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: rule, namespace: shop}
spec: {destination: {name: reviews}, precedence: 1, route: [{labels: {}}]}
`)
	var got []string
	for _, p := range s.ExpectedProxies() {
		got = append(got, p.String()+" "+p.Labels.String())
	}
	want := []string{
		"ingress~192.0.2.1~any.shop~shop.svc.cluster.local ",
		"router~192.0.2.1~any.edge~edge.svc.cluster.local app=edge",
		"sidecar~192.0.2.1~any.edge~edge.svc.cluster.local ",
		"sidecar~192.0.2.1~any.shop~shop.svc.cluster.local ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
