package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// once publishes what the source has.
func once(t testing.TB, s *discovery.Publisher) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ended); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestViewsStay where a change does not concern them, and so do their encoded
// answers.
func TestViewsStay(t *testing.T) {
	web := service(t, "web.example", "10.1.0.1")
	src := newObjects(web)
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	told := func(node string) any {
		view, _, err := s.Told(node)
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	a, b := told(nodeA), told(nodeWeb)
	src.set(web, timeout(t, "nobody.example", 1))
	once(t, s)
	if s.Revision() != 2 || told(nodeA) != a || told(nodeWeb) != b {
		t.Errorf("a view is another one after a change that does not concern it, at revision %d", s.Revision())
	}
	if problems := s.Report().Problems; len(problems) != 1 {
		t.Errorf("problems of the change: %v", problems)
	}
	src.set(web, timeout(t, "web.example", 1))
	once(t, s)
	if told(nodeA) == a || told(nodeWeb) == b {
		t.Error("a view is the same after a change that concerns it")
	}
}

// TestStepByStepIsAsAtOnce: whatever changes, and in which order, proxies are
// told what they would be told by a server that has just started, and the
// problems are the same.
func TestStepByStepIsAsAtOnce(t *testing.T) {
	outside.Slow(t)
	nodes := append(slices.Clone(meshgen.Proxies), nodeA, nodeB, nodeWeb)
	for i := range 3 {
		nodes = append(nodes, fmt.Sprintf("sidecar~10.1.0.%d~x~elsewhere.svc.cluster.local", i+1), fmt.Sprintf("ingress~10.1.0.%d~x~other.example", i+1))
	}
	rapid.Check(t, func(rt *rapid.T) {
		var objs []*schema.Object
		src := newObjects()
		registry := prometheus.NewRegistry()
		s := discovery.New(discovery.Options{Source: src, Settings: settings(), Registry: registry})
		once(t, s)
		asked := map[string]bool{nodeNowhere: true}
		for range rapid.IntRange(1, 5).Draw(rt, "steps") {
			for _, node := range rapid.SliceOfDistinct(rapid.SampledFrom(nodes), rapid.ID).Draw(rt, "nodes") {
				asked[node] = true
			}
			for node := range asked {
				askBoth(rt, s, node)
			}
			objs = changed(rt, objs)
			src.set(objs...)
			once(t, s)
			anew := discovery.New(discovery.Options{Source: src, Settings: settings()})
			once(t, anew)
			for node := range asked {
				askBoth(rt, anew, node)
				_, got, err1 := s.ToldTo(meshgen.Node(rt, node))
				_, want, err2 := anew.ToldTo(meshgen.Node(rt, node))
				if err := errors.Join(err1, err2); err != nil {
					rt.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					rt.Fatalf("%s (-at once +step by step):\n%s", node, cmp.Diff(want, got))
				}
			}
			got, want := s.Report(), anew.Report()
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("problems (-at once +step by step):\n%s", diff)
			}
			if n := gauge(rt, registry, "problems"); n != len(got.Problems) {
				rt.Fatalf("%d problems are counted, %d told", n, len(got.Problems))
			}
		}
	})
}

// nodeNowhere never has an instance beside it.
const nodeNowhere = "sidecar~192.0.2.77~x~default.svc.cluster.local"

// askBoth asks in both versions: what one cannot say is a problem from then on.
func askBoth(t rapid.TB, s *discovery.Publisher, text string) {
	node := meshgen.Node(t, text)
	err1 := s.AskV1(node)
	_, err3 := s.V3(discovery.ClusterType, node, "", nil)
	if err := errors.Join(err1, err3); err != nil {
		t.Fatal(err)
	}
}

// changed is some of the objects, with some that may replace them, or are new.
func changed(rt *rapid.T, objs []*schema.Object) []*schema.Object {
	byKey := map[schema.Key]*schema.Object{}
	for _, o := range slices.Concat(objs, meshgen.Objects(rt)) {
		if rapid.IntRange(0, 3).Draw(rt, "keep") > 0 {
			byKey[o.Key()] = o
		}
	}
	var all []*schema.Object
	for _, o := range byKey {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *schema.Object) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	return all
}

func gauge(t interface{ Fatal(...any) }, r *prometheus.Registry, name string) int {
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "pilot_discovery_"+name {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return -1
}

// TestProxiesFollowTheirInstances: what a workload serves is told to the proxy
// beside it when that is known, and no more when it is not.
func TestProxiesFollowTheirInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{Registry: registry})
		serves := func(node string, want bool) {
			t.Helper()
			time.Sleep(time.Second)
			a, err := s.V1Listeners(node)
			if got := strings.Contains(string(a.Body), "tcp://10.9.0.1:8080"); err != nil || got != want {
				t.Errorf("%s serves: %v, want %v (%v)", node, got, want, err)
			}
		}
		serves(nodeA, false)
		serves(nodeB, false)
		wantGauges(t, registry, map[string]int{"views": 1, "proxies": 2})
		src.set(service(t, "web.example", "10.9.0.1"))
		serves(nodeA, true)
		serves(nodeB, false)
		wantGauges(t, registry, map[string]int{"views": 2, "proxies": 2})
		src.set(service(t, "web.example", "10.1.0.1"))
		serves(nodeA, false)
		wantGauges(t, registry, map[string]int{"views": 1, "proxies": 2})
	})
}

// TestAMistakeKeepsTheLastGood of those it concerns, also of one whose view is
// another one from then on, and of nobody else.
func TestAMistakeKeepsTheLastGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, api := service(t, "web.example", "10.1.0.1"), service(t, "api.example", "10.9.0.1")
		src := newObjects(web)
		broken := &faults{}
		s := followWith(t, src, discovery.Options{}, broken)
		clusters := func(node string) string {
			t.Helper()
			a, err := s.V1Clusters(node)
			if err != nil {
				t.Fatal(err)
			}
			return string(a.Body)
		}
		a, b := clusters(nodeA), clusters(nodeB)
		own := clusters(nodeWeb)
		broken.proxy = func(traits mesh.Traits) {
			if len(traits.Instances) > 0 {
				panic("a mistake")
			}
		}
		src.set(web, api)
		time.Sleep(time.Second)
		if clusters(nodeA) != a || clusters(nodeWeb) != own {
			t.Error("a proxy is told something else although that could not be compiled")
		}
		if clusters(nodeB) == b {
			t.Error("a proxy is not told the news that could be compiled")
		}
		if told := s.Report().Problems.Error(); !strings.Contains(told, "keep an older configuration") || s.Revision() != 2 {
			t.Errorf("revision %d with problems %s", s.Revision(), told)
		}
		if _, err := s.V1Clusters("sidecar~10.1.0.1~other.default~elsewhere"); err == nil {
			t.Error("a newcomer is told what could not be compiled")
		}
		broken.proxy = nil
		src.set(web, api, timeout(t, "web.example", 1))
		time.Sleep(time.Second)
		if clusters(nodeA) == a || clusters(nodeWeb) == own || len(s.Report().Problems) > 0 {
			t.Errorf("the mistake still holds: %v", s.Report().Problems)
		}
	})
}

// TestNewcomersDoNotWait for views of others that are being made.
func TestNewcomersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		slow := &faults{}
		s := followWith(t, src, discovery.Options{}, slow)
		before, err := s.V1Clusters(nodeA)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		finish := make(chan struct{})
		slow.proxy = func(traits mesh.Traits) {
			if len(traits.Instances) == 0 {
				<-finish
			}
		}
		src.set(web, service(t, "api.example", "10.1.0.2"))
		synctest.Wait()
		answered := make(chan string, 2)
		go func() { a, _ := s.V1Clusters(nodeWeb); answered <- string(a.Body) }()
		go func() { a, _ := s.V1Clusters(nodeA); answered <- string(a.Body) }()
		synctest.Wait()
		if len(answered) != 2 {
			t.Fatal("proxies wait for a view that is not theirs, or for the next one of theirs")
		}
		for range 2 {
			if a := <-answered; strings.Contains(a, "api.example") == (a == string(before.Body)) {
				t.Errorf("a mixture of two snapshots: %s", a)
			}
		}
		if s.Revision() != 1 {
			t.Errorf("revision %d is told while it is being published", s.Revision())
		}
		close(finish)
		synctest.Wait()
		if s.Revision() != 2 {
			t.Errorf("revision %d in the end", s.Revision())
		}
	})
}
