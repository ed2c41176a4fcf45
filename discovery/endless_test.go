package discovery_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestEndpointsOfWhatLeavesAreToldOnce: a client that accepts everything has heard
// everything after a few responses, however it asks for endpoints.
func TestEndpointsOfWhatLeavesAreToldOnce(t *testing.T) {
	for name, asks := range map[string][]string{
		"all":     {"*"},
		"by name": {"web.example|http", "b.example|http"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, b := service(t, "web.example", "10.1.0.1"), service(t, "b.example", "10.1.0.9")
				src := newObjects(web, b)
				s := follow(t, src, discovery.Options{})
				stream, err := s.Connect(mesh.Node{ID: nodeA}, discovery.Delta)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				for typeURL, names := range map[string][]string{
					discovery.ClusterType: {"*"}, discovery.EndpointType: asks, discovery.ListenerType: {"*"}, discovery.RouteType: {"*"},
				} {
					if err := stream.Receive(discovery.Request{TypeURL: typeURL, Subscribe: names}); err != nil {
						t.Fatal(err)
					}
				}
				acceptAll(t, stream)
				src.set(web)
				time.Sleep(time.Minute)
				acceptAll(t, stream)
			})
		})
	}
}

// acceptAll accepts what the stream has to say until it says nothing for a while.
func acceptAll(t *testing.T, stream *discovery.Stream) {
	t.Helper()
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := stream.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it goes on and on")
}
