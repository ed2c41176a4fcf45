package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
)

const looked = "sidecar~10.1.0.1~a-1.default~default.svc.cluster.local"

func inspect(t *testing.T, s *discovery.Publisher, id string) *discovery.Inspection {
	t.Helper()
	i, err := s.Inspect(discovery.Node{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// texts are all resources of an inspection, with their versions.
func texts(t *testing.T, i *discovery.Inspection) string {
	t.Helper()
	var all []discovery.Resource
	for _, name := range discovery.ConfigTypes {
		found, err := i.Resources(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// waiting counts the goroutines that wait for a lock or a semaphore in a function.
func waiting(function string) int {
	text := make([]byte, 4<<20)
	text = text[:runtime.Stack(text, true)]
	n := 0
	for one := range strings.SplitSeq(string(text), "\n\n") {
		if head, _, _ := strings.Cut(one, "\n"); (strings.Contains(head, "[sync.") || strings.Contains(head, "[select")) && strings.Contains(one, function+"(") {
			n++
		}
	}
	return n
}

// TestQuestionsDoNotHoldUpPublication: however many ask what a stranger would be told,
// what is written is compiled after the question that is at work and one more at most.
func TestQuestionsDoNotHoldUpPublication(t *testing.T) {
	const many = 30
	var compiled, before atomic.Int64
	var asked atomic.Bool
	atWork, goOn := make(chan struct{}), make(chan struct{})
	advanced := make(chan struct{})
	src := newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1"))
	hooks := &faults{
		proxy: func(mesh.Traits) {
			if asked.Load() && compiled.Add(1) == 1 {
				close(atWork)
				<-goOn
			}
		},
		advance: func(*mesh.Snapshot) {
			if asked.CompareAndSwap(true, false) {
				before.Store(compiled.Load())
				close(advanced)
			}
		},
	}
	opts := discovery.Options{Source: src, Settings: settings()}
	s := discovery.NewWith(opts, func(c discovery.Compiler) discovery.Compiler { return faulty{c, hooks} })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	for !s.Ready() {
		runtime.Gosched()
	}
	asked.Store(true)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if _, err := s.Inspect(discovery.Node{ID: fmt.Sprintf("sidecar~10.2.0.%d~x-%d.n%d~n%d.svc.cluster.local", i, i, i, i)}); err != nil {
				t.Error(err)
			}
		})
	}
	<-atWork
	for waiting("inspectUnknown") < many-1 {
		runtime.Gosched()
	}
	src.set(service(t, "a.default.svc.cluster.local", "10.1.0.1"), service(t, "b.default.svc.cluster.local", "10.1.0.2"))
	for waiting("advance") < 1 {
		runtime.Gosched()
	}
	close(goOn)
	<-advanced
	all.Wait()
	if n := before.Load(); n > 2 {
		t.Errorf("%d questions were answered before what was written was compiled, want at most 2", n)
	}
}

// TestLookingMakesNobodyKnown: one that never asked is compiled for the looking,
// as what it is told once it asks, and is nobody until then.
func TestLookingMakesNobodyKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1"))
		s := follow(t, src, discovery.Options{MaxProxies: 1})
		polls(t, s, "sidecar~10.1.0.7~other.default~default.svc.cluster.local")
		before := inspect(t, s, looked)
		if before.Known || len(s.Proxies()) != 1 {
			t.Fatalf("known: %v, proxies: %+v", before.Known, s.Proxies())
		}
		text := texts(t, before)
		if !strings.Contains(text, `"port_value":8080`) {
			t.Errorf("no listener of its own workload:\n%s", text)
		}
		polls(t, s, looked)
		if now := inspect(t, s, looked); !now.Known || texts(t, now) != text {
			t.Errorf("known: %v; it is told\n%s\nand was said to be\n%s", now.Known, texts(t, now), text)
		}
		src.set(service(t, "a.default.svc.cluster.local", "10.1.0.1"), service(t, "b.default.svc.cluster.local", "10.1.0.2"))
		time.Sleep(pause)
		for _, id := range []string{looked, "sidecar~10.1.0.2~b-1.default~default.svc.cluster.local"} {
			if !strings.Contains(texts(t, inspect(t, s, id)), "out.b.default.svc.cluster.local|http") {
				t.Errorf("%s: what was written later is not in what it is told", id)
			}
		}
	})
}

func TestLookingAtNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1")), discovery.Options{})
		if _, err := s.Inspect(discovery.Node{ID: "x"}); err == nil {
			t.Error("a node id that is none was taken")
		}
		r, err := explain.NewRequest("GET", "http://a:80/", nil)
		if err != nil {
			t.Fatal(err)
		}
		e := inspect(t, s, looked).Explain().Ask(r)
		if e.Forward == nil || e.Forward.Clusters[0].Endpoints[0] != "10.1.0.1:8080" {
			t.Errorf("got %+v", e)
		}
	})
}

// polls has a proxy ask for its clusters.
func polls(t *testing.T, s *discovery.Publisher, id string) {
	t.Helper()
	if _, err := s.V3(discovery.ClusterType, discovery.Node{ID: id}, "", nil); err != nil {
		t.Fatal(err)
	}
}

// TestInspectOfAnEnvoyAndAProgram: of two that call themselves the same the Envoy is
// shown, whichever came last, and the program where that is asked for.
func TestInspectOfAnEnvoyAndAProgram(t *testing.T) {
	for _, order := range [][]string{{"ads", "grpc"}, {"grpc", "ads"}, {"rest", "grpc"}, {"grpc", "rest"}, {"grpc"}} {
		t.Run(strings.Join(order, " and "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := follow(t, newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1")), discovery.Options{})
				for _, over := range order {
					var st *discovery.Stream
					var err error
					switch over {
					case "ads":
						st, err = s.Connect(discovery.Node{ID: looked}, discovery.StateOfTheWorld)
					case "grpc":
						st, err = s.ConnectProxyless(discovery.Node{ID: looked})
					default:
						polls(t, s, looked)
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					defer st.Close()
				}
				want := discovery.OverGRPC
				for _, over := range order {
					if over != "grpc" {
						want = discovery.Transport(over)
					}
				}
				i := inspect(t, s, looked)
				if i.Over != want {
					t.Errorf("it is shown over %s", i.Over)
				}
				shown := texts(t, i)
				i.Over = discovery.OverGRPC
				if alike := texts(t, i) == shown; alike != (want == discovery.OverGRPC) {
					t.Errorf("over %s it is shown\n%s", want, shown)
				}
			})
		})
	}
}
