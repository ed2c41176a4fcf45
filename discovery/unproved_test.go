package discovery_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestInventedProxiesHoldUpNobody: a node id that polled once, from beside no workload,
// does not count; one that comes back does, and so does one beside a workload at once.
func TestInventedProxiesHoldUpNobody(t *testing.T) {
	for variant, poll := range map[string]func(s *discovery.Publisher, node mesh.Node, version string) (discovery.Answer, error){
		"v3": func(s *discovery.Publisher, node mesh.Node, version string) (discovery.Answer, error) {
			return s.V3(discovery.ClusterType, node, version, nil)
		},
		"v1": func(s *discovery.Publisher, node mesh.Node, _ string) (discovery.Answer, error) {
			return s.V1Clusters(node.ID)
		},
	} {
		t.Run(variant, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 1))
				s := follow(t, src, discovery.Options{})
				ref := diag.Ref{Kind: "RouteRule", Namespace: "default", Name: "timeout"}
				counted := func(want int, when string) {
					t.Helper()
					if of := s.ObjectStatuses(nil).Of(ref, src.revision); of.Proxies != want {
						t.Errorf("%s %d proxies count, want %d", when, of.Proxies, want)
					}
				}
				ask := func(id, version string) discovery.Answer {
					t.Helper()
					a, err := poll(s, mesh.Node{ID: id}, version)
					if err != nil {
						t.Fatal(err)
					}
					return a
				}
				invented := func(i int) string {
					return fmt.Sprintf("sidecar~10.9.%d.%d~x.default~default.svc.cluster.local", i/250, i%250)
				}
				for i := range 500 {
					ask(invented(i), "")
				}
				counted(0, "after 500 ids polled once")
				ask("sidecar~10.1.0.1~web.default~default.svc.cluster.local", "")
				counted(1, "after a workload's proxy polled once")
				a := ask(invented(1000), "")
				counted(1, "after a stranger polled once")
				time.Sleep(5 * time.Second)
				ask(invented(1000), a.Version)
				counted(2, "after the stranger came back")
				if variant == "v1" {
					return
				}
				ask(invented(1001), "of another replica")
				counted(3, "after a proxy came from another replica")
				for i := range 500 {
					ask(invented(2000+i), "invented")
				}
				counted(66, "after 500 ids invented a version")
			})
		})
	}
}
