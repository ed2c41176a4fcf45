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

// TestStreamIsNotWoken by what does not concern its proxy.
func TestStreamIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 1))
		s := follow(t, src, discovery.Options{})
		other := object(t, "RouteRule", "other",
			`{"destination":{"service":"web.example"},"precedence":2,"match":{"source":{"service":"web.example"}},"route":[{"labels":{"version":"x"}}]}`)
		web, far := stream(t, s, nodeWeb), stream(t, s, nodeA)
		src.set(append(src.all, other)...)
		time.Sleep(time.Second)
		synctest.Wait()
		if !web.IsWoken() {
			t.Error("the proxy that the rule is for sleeps on")
		}
		if far.IsWoken() {
			t.Error("a proxy that the rule does not concern is woken")
		}
	})
}

// stream is one that has been told everything.
func stream(t *testing.T, s *discovery.Publisher, node string) *discovery.Stream {
	t.Helper()
	st, err := s.Connect(mesh.Node{ID: node}, discovery.Delta)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType} {
		if err := st.Receive(discovery.Request{TypeURL: typeURL}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for {
		r, err := st.Next(ctx)
		if err != nil {
			return st
		}
		if err := st.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongNames that a stream subscribes to are too many before they are many.
func TestLongNames(t *testing.T) {
	for _, kind := range []discovery.Variant{discovery.Delta, discovery.StateOfTheWorld} {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := discovery.New(discovery.Options{Source: src, Settings: settings()})
		once(t, s)
		st, err := s.Connect(mesh.Node{ID: nodeWeb}, kind)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		var names []string
		for err == nil && len(names) < 20 {
			names = append(names, fmt.Sprint(len(names), strings.Repeat("x", 1<<20)))
			err = st.Receive(discovery.Request{TypeURL: discovery.EndpointType, Subscribe: names[len(names)-1:], Names: names})
		}
		if !errors.Is(err, discovery.ErrTooMany) {
			t.Errorf("delta %t: %d names of 1 MiB, %v", kind, len(names), err)
		}
	}
}

// TestStreamsOfOneProxy: the oldest goes for one that is too many.
func TestStreamsOfOneProxy(t *testing.T) {
	src := newObjects(service(t, "web.example", "10.1.0.1"))
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all []*discovery.Stream
	for range 9 {
		st, err := s.Connect(mesh.Node{ID: nodeWeb}, discovery.Delta)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		all = append(all, st)
	}
	for i, st := range all {
		if _, err := st.Next(ended); errors.Is(err, discovery.ErrGone) != (i == 0) {
			t.Errorf("stream %d: %v", i, err)
		}
	}
}
