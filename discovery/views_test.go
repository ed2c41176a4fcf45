package discovery_test

import (
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
		if a.Version != b.Version {
			t.Error("proxies that differ in address only have different answers")
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

// Invented identities neither push out the proxies that are there nor keep new
// ones from being served.
func TestViewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		src := newObjects(service(t, "web.example", "10.1.0.1"), service(t, "api.example", "10.1.0.2"))
		s := follow(t, src, discovery.Options{Registry: registry, MaxViews: 4, ProxyIdle: time.Minute})
		at := func(ip string) string { return "sidecar~" + ip + "~x~default.svc.cluster.local" }
		web := v3(t, s, discovery.ListenerType, at("10.1.0.1"))
		for i := range 100 {
			// What differs for strangers is their namespace, if any object knows it.
			v3(t, s, discovery.ClusterType, fmt.Sprintf("sidecar~10.9.0.1~x~domain-%d", i))
			v3(t, s, discovery.ClusterType, fmt.Sprintf("router~10.9.0.1~x~domain-%d.example", i))
			v3(t, s, discovery.ClusterType, fmt.Sprintf("ingress~10.9.0.1~x~domain-%d.svc.cluster.local", i))
		}
		api := v3(t, s, discovery.ListenerType, at("10.1.0.2"))
		if api.Version == web.Version {
			t.Error("two workloads have one view")
		}
		wantGauges(t, registry, map[string]int{"views": 4})
		if again := v3(t, s, discovery.ListenerType, at("10.1.0.1")); again.Version != web.Version {
			t.Error("a proxy is told something else after strangers came")
		}
	})
}

// TestViewsThatNobodyAsksForGo without anything else happening.
func TestViewsThatNobodyAsksForGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{Registry: registry, ProxyIdle: time.Minute})
		v3(t, s, discovery.ClusterType, nodeWeb)
		wantGauges(t, registry, map[string]int{"views": 2, "proxies": 1})
		time.Sleep(3 * time.Minute)
		wantGauges(t, registry, map[string]int{"views": 1, "proxies": 0})
	})
}

// TestAWorkloadIsRememberedAmongStrangers, however many of them there are: what
// it was told is what a change is handed over from.
func TestAWorkloadIsRememberedAmongStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{Registry: registry, MaxProxies: 10})
		v3(t, s, discovery.ClusterType, nodeWeb)
		for i := range 200 {
			v3(t, s, discovery.ClusterType, fmt.Sprintf("sidecar~10.9.0.%d~x~default.svc.cluster.local", i))
		}
		wantGauges(t, registry, map[string]int{"proxies": 10})
		if !s.Knows(nodeWeb) {
			t.Error("the workload's proxy is forgotten")
		}
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
