package discovery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestWhoLeavesIsGone: a proxy whose stream ends is not waited for, and one that polls
// from then on is there again.
func TestWhoLeavesIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{})
		stream, err := s.Connect(mesh.Node{ID: nodeA}, discovery.Delta)
		if err != nil {
			t.Fatal(err)
		}
		if all := s.Proxies(); len(all) != 1 || all[0].Transport != discovery.OverDelta {
			t.Errorf("on a stream: %+v", all)
		}
		stream.Close()
		if all := s.Proxies(); len(all) != 0 {
			t.Errorf("after its stream has ended: %+v", all)
		}
		time.Sleep(time.Second)
		if _, err := s.V3(discovery.ClusterType, mesh.Node{ID: nodeA}, "", nil); err != nil {
			t.Fatal(err)
		}
		if all := s.Proxies(); len(all) != 1 || all[0].Transport != discovery.OverREST {
			t.Errorf("while it polls: %+v", all)
		}
	})
}
