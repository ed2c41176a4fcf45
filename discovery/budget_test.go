package discovery_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// manyServices are some.
func manyServices(t *testing.T, n int) []*schema.Object {
	var all []*schema.Object
	for i := range n {
		all = append(all, service(t, fmt.Sprintf("s%d.example", i), fmt.Sprintf("10.1.%d.1", i)))
	}
	return all
}

func nodeIn(n int) string {
	return fmt.Sprintf("sidecar~10.9.1.%d~x~ns-%d.svc.cluster.local", n, n)
}

// TestNoRoomForAnotherView: a new proxy is refused, and told why, while those that
// are served go on. There is room again when others are gone.
func TestNoRoomForAnotherView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		all := manyServices(t, 20)
		for i := range 100 {
			own := object(t, "VirtualService", "own", `{"hosts":["s1.example","s2.example","s3.example"],"exportTo":["."],"http":[{"timeout":"3s","route":[{"destination":{"host":"s1.example"}}]}]}`)
			all = append(all, inNamespace(t, own, fmt.Sprintf("ns-%d", i)))
		}
		src := newObjects(all...)
		s := follow(t, src, discovery.Options{MaxResults: 5000, Registry: registry})
		var refused string
		served := 0
		for ; served < 200; served++ {
			node := mesh.Node{ID: nodeIn(served)}
			if _, err := s.V3(discovery.ClusterType, node, "", nil); err != nil {
				if refused = node.ID; !errors.Is(err, discovery.ErrOverBudget) || !errors.Is(err, discovery.ErrNotReady) {
					t.Fatalf("got %v", err)
				}
				break
			}
		}
		if refused == "" || served < 2 {
			t.Fatalf("%d views are served, then none of %q", served, refused)
		}
		if _, err := s.Connect(mesh.Node{ID: refused}, discovery.Delta); !errors.Is(err, discovery.ErrOverBudget) {
			t.Errorf("a stream: %v", err)
		}
		src.replace(0, service(t, "s0.example", "10.1.0.2"))
		time.Sleep(pause)
		if a := v3(t, s, discovery.EndpointType, nodeIn(0), "s0.example|http"); !strings.Contains(string(a.Body), "10.1.0.2") {
			t.Errorf("a proxy that is served is not told of a change: %s", a.Body)
		}
		time.Sleep(2 * time.Minute)
		if _, err := s.V3(discovery.ClusterType, mesh.Node{ID: refused}, "", nil); err != nil {
			t.Errorf("when all others are gone: %v", err)
		}
	})
}

// TestViewThatCannotBeRenewed keeps what it has, which is a Problem, and other
// objects are published and can be deleted.
func TestViewThatCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few := manyServices(t, 5)
		src := newObjects(few...)
		s := follow(t, src, discovery.Options{MaxResults: 1800})
		before := v3(t, s, discovery.ClusterType, nodeA)
		src.set(append(few, manyServices(t, 200)[5:]...)...)
		time.Sleep(pause)
		if after := v3(t, s, discovery.ClusterType, nodeA); after.Version != before.Version {
			t.Error("the proxy does not keep what it has")
		}
		found := false
		for _, p := range s.Report().Problems {
			found = found || p.Code == diag.NotPublished && strings.Contains(p.Message, "role sidecar in default.svc.cluster.local") && strings.Contains(p.Message, "at most 1800 are kept")
		}
		if !found {
			t.Errorf("no Problem names the view: %v", s.Report().Problems)
		}
		src.set(append(few, service(t, "new.example", "10.1.9.9"))...)
		time.Sleep(pause)
		if after := v3(t, s, discovery.ClusterType, nodeA); !strings.Contains(string(after.Body), "new.example") {
			t.Error("it is not renewed when what was too much is deleted")
		}
		if problems := s.Report().Problems; len(problems) > 0 {
			t.Errorf("problems are left: %v", problems)
		}
	})
}

// TestPreviewGivesItsRoomBack: what compiles beside the views takes no room when it has
// ended, whether or not the garbage collector ran.
func TestPreviewGivesItsRoomBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		all := manyServices(t, 5)
		s := follow(t, newObjects(all...), discovery.Options{Registry: registry})
		v3(t, s, discovery.ClusterType, nodeA)
		before := gauge(t, registry, "results")
		if before <= 0 {
			t.Fatalf("%d results of a view", before)
		}
		if _, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: all[:1]}); err != nil {
			t.Fatal(err)
		}
		if after := gauge(t, registry, "results"); after != before {
			t.Errorf("%d results after a preview, %d before", after, before)
		}
		if _, _, err := s.LostInV1(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := gauge(t, registry, "results"); after != before {
			t.Errorf("%d results after LostInV1, %d before", after, before)
		}
	})
}
