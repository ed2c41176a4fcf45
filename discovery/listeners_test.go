package discovery_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// tcpServices have a listener each.
func tcpServices(t *testing.T, n int) *objects {
	all := newObjects()
	for i := range n {
		all.all = append(all.all, object(t, "ServiceEntry", fmt.Sprintf("db-%d", i), fmt.Sprintf(
			`{"hosts":["db-%d.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":%d,"name":"tcp","protocol":"TCP"}],`+
				`"endpoints":[{"address":"10.1.0.%d"}]}`, i, 3000+i, 1+i)))
	}
	return all
}

// TestInventedAddressesTakeNoMemory, and everybody at them is told the same.
func TestInventedAddressesTakeNoMemory(t *testing.T) {
	outside.Slow(t)
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, tcpServices(t, 40), discovery.Options{})
		ask := func(i int) (string, string) {
			node := fmt.Sprintf("sidecar~10.9.%d.%d~x~default.svc.cluster.local", i/250, i%250)
			v1, err := s.V1Listeners(node)
			if err != nil {
				t.Fatal(err)
			}
			return v3(t, s, discovery.ListenerType, node).Version, v1.Version
		}
		was3, was1 := ask(0)
		before := heap()
		const addresses = 3000
		for i := range addresses {
			ask(i)
		}
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("%d addresses took %d MiB", addresses, grown>>20)
		}
		if now3, now1 := ask(0); now3 != was3 || now1 != was1 {
			t.Error("an address is told something else after others came")
		}
		runtime.KeepAlive(s)
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
