package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pilot-api/pilot-api/discovery"
)

// wantGauges compares gauges with what the registry shows.
func wantGauges(t *testing.T, r *prometheus.Registry, want map[string]int) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "pilot_discovery_")
		if n, ok := want[name]; ok && int(f.GetMetric()[0].GetGauge().GetValue()) != n {
			t.Errorf("%s: got %v, want %d", name, f.GetMetric()[0].GetGauge().GetValue(), n)
		}
	}
}

func TestEqualProxiesShareAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{Registry: registry})
		a, b := v3(t, s, discovery.ClusterType, nodeA), v3(t, s, discovery.ClusterType, nodeB)
		if &a.Body[0] != &b.Body[0] {
			t.Error("proxies that differ in address only have copies of the same answer")
		}
		if web := v3(t, s, discovery.ClusterType, nodeWeb); web.Version == a.Version {
			t.Error("a proxy with an own instance has the clusters of one without")
		}
		wantGauges(t, registry, map[string]int{"views": 2, "proxies": 3, "revision": 1})
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Errorf("metrics: %v %v", problems, err)
		}
	})
}

func TestListenersAreOfTheProxysAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := object(t, "ServiceEntry", "web", `{"hosts":["web.example"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
			`"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.1.0.1"},{"address":"10.1.0.2"}]}`)
		s := follow(t, newObjects(two), discovery.Options{})
		for _, ip := range []string{"10.1.0.1", "10.1.0.2"} {
			node := "sidecar~" + ip + "~web.default~default.svc.cluster.local"
			names := strings.Join(resourceNames(t, v3(t, s, discovery.ListenerType, node)), " ")
			if !strings.Contains(names, "http_"+ip+"_80") {
				t.Errorf("proxy at %s has listeners %s", ip, names)
			}
			v1, err := s.V1Listeners(node)
			if err != nil || !strings.Contains(string(v1.Body), "tcp://"+ip+":80") {
				t.Errorf("proxy at %s has v1 listeners %s (%v)", ip, v1.Body, err)
			}
		}
	})
}

func TestSilentProxiesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		s := follow(t, src, discovery.Options{Registry: registry, ProxyIdle: time.Minute})
		v3(t, s, discovery.ClusterType, nodeA)
		v3(t, s, discovery.ClusterType, nodeWeb)
		time.Sleep(50 * time.Second)
		v3(t, s, discovery.ClusterType, nodeA)
		time.Sleep(50 * time.Second)

		src.set(web)
		time.Sleep(pause)
		wantGauges(t, registry, map[string]int{"views": 1, "proxies": 1})
		v3(t, s, discovery.ClusterType, nodeWeb)
		wantGauges(t, registry, map[string]int{"views": 2, "proxies": 2})
	})
}

// Invented identities must not push out the proxies that are there.
func TestViewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{Registry: registry, MaxViews: 3, ProxyIdle: time.Minute})
		node := func(i int) string { return fmt.Sprintf("sidecar~10.9.0.1~x~domain-%d", i) }
		for i := range 10 {
			_, err := s.V3(discovery.ClusterType, node(i), "", nil)
			if fits := i < 2; fits != (err == nil) || !fits && !errors.Is(err, discovery.ErrNotReady) {
				t.Errorf("proxy %d: %v", i, err)
			}
		}
		v3(t, s, discovery.ClusterType, node(1))
		wantGauges(t, registry, map[string]int{"views": 3, "proxies": 2})

		time.Sleep(2 * time.Minute)
		v3(t, s, discovery.ClusterType, node(7))
	})
}

func TestProxiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{Registry: registry, MaxProxies: 4})
		for i := range 10 {
			v3(t, s, discovery.ListenerType, fmt.Sprintf("sidecar~10.9.0.%d~x~default.svc.cluster.local", i))
		}
		wantGauges(t, registry, map[string]int{"views": 1, "proxies": 4})
	})
}

// Problems are known before any proxy asks, and once each.
func TestProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "nobody.example", 1)), discovery.Options{})
		before := s.Report().Problems
		if len(before) != 1 || before[0].Object.Name != "timeout" {
			t.Errorf("want one problem, of the rule for a service that is not there, found %v", before)
		}
		for _, node := range []string{nodeA, nodeB, nodeWeb} {
			everything(t, s, node)
		}
		if after := s.Report().Problems; len(after) != len(before) {
			t.Errorf("problems after proxies asked: %v", after)
		}
	})
}
