package discovery_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestPastIsLetGo: what was published first is in memory while a proxy may come
// that knows it, and not for longer, also where nobody asks and nothing changes
// any more.
func TestPastIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{PastSettings: []*mesh.Settings{settings()}})
		s.Report()
		first := s.Snapshot()
		src.set(service(t, "web.example", "10.1.0.2"))
		time.Sleep(time.Second)
		runtime.GC()
		if first.Value() == nil {
			t.Error("the past is gone while a proxy may come that knows it")
		}
		time.Sleep(2 * time.Minute)
		runtime.GC()
		if first.Value() != nil {
			t.Error("the past is still in memory")
		}
	})
}
