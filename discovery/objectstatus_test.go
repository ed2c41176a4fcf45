package discovery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestLookAfterALook: a look that shares what an earlier one found says of each object
// what one from scratch does, whoever came, left or was told something else meanwhile,
// and the earlier one says what it said.
func TestLookAfterALook(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { looksAtRandom(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func looksAtRandom(t *testing.T, rng *rand.Rand) {
	src := newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 1))
	s := follow(t, src, discovery.Options{})
	all := func(of *discovery.ObjectStatuses) map[string]discovery.ObjectStatus {
		out := map[string]discovery.ObjectStatus{}
		for _, o := range of.Objects {
			for _, revision := range []int64{0, o.Revision(), of.Revision + 1} {
				out[fmt.Sprint(o.Key(), revision)] = of.Of(o.Key().Ref(), revision)
			}
		}
		return out
	}
	var last *discovery.ObjectStatuses
	streams := map[int]*discovery.Stream{}
	concerned := false
	for step := range 60 {
		i := rng.IntN(6)
		switch st := streams[i]; {
		case rng.IntN(4) == 0:
			src.set(service(t, "web.example", fmt.Sprintf("10.9.%d.1", rng.IntN(4))), timeout(t, "web.example", step+2))
			time.Sleep(time.Second)
			synctest.Wait()
		case st == nil:
			streams[i] = connectAndTake(t, s, fmt.Sprintf("sidecar~10.9.%d.1~p-%d.x~space-%d.svc.cluster.local", i, i, i%2))
		case rng.IntN(2) == 0:
			takeDue(t, st)
		default:
			st.Close()
			delete(streams, i)
		}
		var before map[string]discovery.ObjectStatus
		if last != nil {
			before = all(last)
		}
		next := s.ObjectStatuses(last)
		scratch := s.ObjectStatuses(nil)
		if diff := cmp.Diff(all(scratch), all(next)); diff != "" {
			t.Fatalf("step %d: (-from scratch +after the last look)\n%s", step, diff)
		}
		if last != nil {
			if diff := cmp.Diff(before, all(last)); diff != "" {
				t.Fatalf("step %d changed what the look before it found: %s", step, diff)
			}
		}
		for _, o := range next.Objects {
			concerned = concerned || next.Of(o.Key().Ref(), o.Revision()).Running > 1
		}
		last = next
	}
	if !concerned {
		t.Error("no object was ever run by two proxies")
	}
}

func connectAndTake(t *testing.T, s *discovery.Publisher, node string) *discovery.Stream {
	st, err := s.Connect(mesh.Node{ID: node}, discovery.Delta)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	for _, r := range []discovery.Request{{TypeURL: discovery.ClusterType}, {TypeURL: discovery.ListenerType}, {TypeURL: discovery.EndpointType, Subscribe: []string{webEndpoints}}, {TypeURL: discovery.RouteType, Subscribe: []string{"80", proxyTable}}} {
		if err := st.Receive(r); err != nil {
			t.Fatal(err)
		}
		takeDue(t, st)
	}
	return st
}

// takeDue accepts what is due now.
func takeDue(t *testing.T, st *discovery.Stream) {
	ended, end := context.WithCancel(t.Context())
	end()
	for {
		r, err := st.Next(ended)
		if err != nil {
			return
		}
		if err := st.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStandingOfANarrowedRule: a rule that no longer concerns a proxy is not programmed
// while that still goes by it.
func TestStandingOfANarrowedRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, timeout(t, "web.example", 1))
		s := follow(t, src, discovery.Options{})
		connectAndTake(t, s, nodeA)
		ref := diag.Ref{Kind: "RouteRule", Namespace: "default", Name: "timeout"}
		before := s.ObjectStatuses(nil)
		if of := before.Of(ref, src.revision); of.Proxies != 1 || of.Running != 1 {
			t.Fatalf("at first %+v", of)
		}
		src.set(web, object(t, "RouteRule", "timeout", `{"destination":{"service":"web.example"},"precedence":1,
			"match":{"source":{"service":"web.example"}},"route":[{"weight":100}],"httpReqTimeout":{"simpleTimeout":{"timeout":"9s"}}}`))
		time.Sleep(time.Second)
		synctest.Wait()
		for name, look := range map[string]*discovery.ObjectStatuses{"first": s.ObjectStatuses(nil), "next": s.ObjectStatuses(before)} {
			if of := look.Of(ref, src.revision); of.Proxies != 1 || of.Running != 0 {
				t.Errorf("the %s look: %+v", name, of)
			}
		}
	})
}

// TestStandingOfAMovedProxy: a proxy that polls, came to another view and refuses its
// listeners runs nothing that came with that, however often the view changes.
func TestStandingOfAMovedProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		p := newPoller(t, follow(t, src, discovery.Options{}))
		rounds := func() {
			for range 20 {
				for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType} {
					p.ask(typeURL)
				}
				p.ask(discovery.RouteType, "80")
				p.ask(discovery.RouteType, proxyTable)
				p.ask(discovery.EndpointType, webEndpoints)
				p.ask(discovery.EndpointType, "api.example|http")
				time.Sleep(time.Second)
			}
		}
		rounds()
		if one := p.s.Proxies()[0]; one.Revision != src.revision {
			t.Fatalf("at first it runs %d, want %d", one.Revision, src.revision)
		}
		p.deny[discovery.ListenerType] = true
		own := service(t, "web.example", "10.9.0.1")
		src.set(own)
		moved := src.revision
		rounds()
		src.set(own, service(t, "api.example", "10.1.0.2"))
		rounds()
		if one := p.s.Proxies()[0]; one.Revision >= moved {
			t.Errorf("it runs %d, and was moved at %d", one.Revision, moved)
		}
		// Who is to blame is told, where one looks: at the object, and among the problems.
		ref := own.Key().Ref()
		if of := p.s.ObjectStatuses(nil).Of(ref, moved); len(of.Refusals) != 1 || of.Refusals[0].Type != "listeners" || of.Running != 0 {
			t.Errorf("%+v", of)
		}
		told := p.s.Report().Problems
		if !slices.ContainsFunc(told, func(p diag.Problem) bool { return p.Code == diag.Refused && p.Object == ref }) {
			t.Errorf("%v", told)
		}
		p.deny[discovery.ListenerType] = false
		rounds()
		if of := p.s.ObjectStatuses(nil).Of(ref, moved); of.Proxies != 1 || of.Running != 1 || of.Refusals != nil {
			t.Errorf("in the end %+v", of)
		}
	})
}
