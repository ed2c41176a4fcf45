package discovery_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestProxiesThatPollNoMoreKeepLittle checks that proxies which poll and then fall silent, while
// a large object changes again and again, do not keep all its states in memory.
func TestProxiesThatPollNoMoreKeepLittle(t *testing.T) {
	// Routes of 10 hosts that nobody declares, at 4 ports.
	rule := func(n int) string {
		var hosts, routes []string
		for i := range 10 {
			hosts = append(hosts, fmt.Sprintf(`"host-%d.example"`, i))
		}
		for i := range 20 {
			routes = append(routes, fmt.Sprintf(`{"match":[{"uri":{"prefix":"/%d-%d-%s"}}],"route":[{"destination":{"host":"web.example"}}]}`, n, i, strings.Repeat("x", 900)))
		}
		return fmt.Sprintf(`{"hosts":[%s],"http":[%s]}`, strings.Join(hosts, ","), strings.Join(routes, ","))
	}
	var ports []string
	for i := range 4 {
		ports = append(ports, fmt.Sprintf(`{"number":%d,"name":"http-%d","protocol":"HTTP"}`, 8000+i, i))
	}
	web := object(t, "ServiceEntry", "web", fmt.Sprintf(`{"hosts":["web.example"],"resolution":"STATIC","ports":[%s],"endpoints":[{"address":"10.0.0.1"}]}`, strings.Join(ports, ",")))
	src := newObjects(web, object(t, "VirtualService", "rule", rule(0)))
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)

	// heap returns the memory after some changes, each seen by a proxy that polls no more.
	heap := func(from, to int) uint64 {
		for n := from; n < to; n++ {
			next := object(t, "VirtualService", "rule", rule(n))
			if !next.Large() {
				t.Fatal("the rule is not large")
			}
			src.replace(1, next)
			once(t, s)
			node := mesh.Node{ID: fmt.Sprintf("sidecar~10.9.0.%d~x.default~default.svc.cluster.local", n)}
			for typeURL, names := range map[string][]string{
				discovery.ClusterType: nil, discovery.ListenerType: nil, discovery.RouteType: {"8001"}, discovery.EndpointType: nil,
			} {
				version := ""
				for range 2 { // The second poll shows that the proxy has the first answer.
					a, err := s.V3(typeURL, node, version, names)
					if err != nil {
						t.Fatal(err)
					}
					version = a.Version
				}
			}
			s.Proxies() // notes what each proxy has shown to have
		}
		var now runtime.MemStats
		for range 2 {
			runtime.GC()
		}
		runtime.ReadMemStats(&now)
		return now.HeapAlloc
	}
	few := heap(1, 21)
	if many := heap(21, 81); many > 2*few {
		t.Errorf("%d MiB after 20 changes, %d MiB after 80", few>>20, many>>20)
	}
}
