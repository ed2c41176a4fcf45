package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestStreamsThatDoNotAnswerEnd checks that a proxy which leaves a response unanswered for long,
// while a large object changes again and again, is ended: its response keeps the object of its
// time in memory. One that answers, and one that was sent something a moment ago, go on.
func TestStreamsThatDoNotAnswerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := func(n int) string {
			var routes []string
			for i := range 20 {
				routes = append(routes, fmt.Sprintf(`{"match":[{"uri":{"prefix":"/%d-%d-%s"}}],"route":[{"destination":{"host":"web.example"}}]}`, n, i, strings.Repeat("x", 900)))
			}
			return fmt.Sprintf(`{"hosts":["web.example"],"http":[%s]}`, strings.Join(routes, ","))
		}
		src := newObjects(service(t, "web.example", "10.0.0.1"), object(t, "VirtualService", "rule", rule(0)))
		s := follow(t, src, discovery.Options{})
		connect := func(n int) *discovery.Stream {
			st, err := s.Connect(mesh.Node{ID: fmt.Sprintf("sidecar~10.9.0.%d~x.default~default.svc.cluster.local", n)}, discovery.Delta)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(st.Close)
			for _, r := range []discovery.Request{{TypeURL: discovery.ClusterType}, {TypeURL: discovery.RouteType, Subscribe: []string{"80"}}} {
				if err := st.Receive(r); err != nil {
					t.Fatal(err)
				}
			}
			return st
		}
		// read takes the responses that are due, and answers them if it says so.
		read := func(st *discovery.Stream, answers bool) error {
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				r, err := st.Next(ctx)
				cancel()
				if err != nil {
					return err
				}
				if answers {
					if err := st.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
						return err
					}
				}
			}
		}
		change := func(from, to int) {
			for n := from; n < to; n++ {
				src.replace(1, object(t, "VirtualService", "rule", rule(n)))
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
		}
		silent, honest := connect(1), connect(2)
		for st, answers := range map[*discovery.Stream]bool{silent: false, honest: true} {
			if err := read(st, answers); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		change(1, 15)
		if err := read(silent, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended within the time that an Envoy may take: %v", err)
		}
		time.Sleep(time.Minute)
		if err := read(honest, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one that answers: %v", err)
		}
		late := connect(3)
		_ = read(late, false)
		change(15, 25)
		if err := read(silent, false); !errors.Is(err, discovery.ErrUnanswered) {
			t.Errorf("the one that does not answer: %v", err)
		}
		for name, st := range map[string]*discovery.Stream{"the one that answers": honest, "the one that came late": late} {
			if err := read(st, true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
