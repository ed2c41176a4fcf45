package evaluator_test

import (
	"net/netip"
	"testing"

	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const ruledHosts = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext}
spec:
  hosts: [ext.example.com, '*.wild.example']
  resolution: NONE
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ext}
spec:
  hosts: [ext.example.com, '*.wild.example']
  http: [{redirect: {authority: refused.example}}]
`

// TestPortsOfUnknownHosts: an Envoy of the v1 API that cannot ignore the port of a
// Host header, nor its final dot, lets no spelling of a known host pass as an
// unknown one.
func TestPortsOfUnknownHosts(t *testing.T) {
	var objects []*schema.Object
	for _, doc := range schema.Split([]byte(ruledHosts), "objects") {
		found, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	node, err := mesh.ParseProxy("sidecar~10.0.0.7~caller.default~default.svc.cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	s, err := world{mesh.DefaultSettings(), objects, node}.spell(t)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"ext.example.com": 301, "EXT.example.com:80": 301, "ext.example.com.": 301, "ext.example.com.:80": 301,
		"a.wild.example": 301, "a.wild.example.": 301, "a.wild.example.:80": 301,
		"ext.example.com:81": 404, "ext.example.com.:81": 404, "ext.example.com:x": 404, "ext.example.com:": 404,
		"ext.example.com..": 404, "user@ext.example.com": 404, "ext.example.com,b": 404, "": 404, "0x7f.1": 404,
		"a.wild.example:81": 404, "a.wild.example..": 404,
		"other.example": 0, "other.example.": 0, "other.example:80": 0, "10.1.2.3:80": 0, "[::1]": 0,
	} {
		got := s.v1.Evaluate(evaluator.Request{
			Captured: true, Destination: netip.MustParseAddrPort("10.99.0.1:80"), Method: "GET", Host: host, Path: "/", Headers: map[string]string{},
		})
		if got.Status != want || want == 0 && (len(got.Shares) != 1 || got.Shares[0].Cluster != "PassthroughCluster") {
			t.Errorf("host %q: %d %v, want %d", host, got.Status, got.Shares, want)
		}
	}
}
