package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// listed returns a mesh in which 10.0.0.1 is an endpoint n times, and the proxy there.
func listed(tb testing.TB, n int) (*mesh.Snapshot, mesh.Proxy) {
	tb.Helper()
	var text strings.Builder
	text.WriteString(`
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: grpc, protocol: GRPC}]
  endpoints:
`)
	for i := range n {
		fmt.Fprintf(&text, "  - {address: 10.0.0.1, weight: %d, labels: {version: v%d}}\n", i+1, i%3)
	}
	proxy, err := mesh.ParseProxy("sidecar~10.0.0.1~web.default~default.svc.cluster.local")
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot(tb, text.String()), proxy
}

// TestViewOfAnAddressListedOften checks that endpoints that the workload beside a proxy
// cannot tell apart are one, and that others are not.
func TestViewOfAnAddressListedOften(t *testing.T) {
	s, proxy := listed(t, 300)
	found := map[string]int{}
	for _, i := range s.TraitsOf(proxy).Instances {
		found[fmt.Sprint(i.Port.Name, " ", i.Labels)]++
	}
	for _, port := range []string{"http", "grpc"} {
		for _, version := range []string{"v0", "v1", "v2"} {
			if key := fmt.Sprint(port, " ", mesh.Labels{"version": version}); found[key] != 1 {
				t.Errorf("%s: %d times, want once", key, found[key])
			}
		}
	}
	if len(found) != 6 {
		t.Errorf("got %v, want two ports of three versions", found)
	}
}

// BenchmarkTraits measures the traits of a proxy whose address is listed n times.
func BenchmarkTraits(b *testing.B) {
	for _, n := range []int{1, 2000} {
		s, proxy := listed(b, n)
		b.Run(fmt.Sprintf("listed=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = s.TraitsOf(proxy).Key()
			}
		})
	}
}
