package discovery_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// The real source: what is written to a store reaches the proxies.
func TestFollowsAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := memory.New()
		view := cache.New(objects, cache.Options{Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = view.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		s := follow(t, view, discovery.Options{})
		if !s.Ready() {
			t.Fatal("not ready over an empty store")
		}

		stored, err := objects.Create(ctx, service(t, "web.example", "10.1.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		if s.Revision() != stored.Revision() {
			t.Errorf("revision %d, want %d", s.Revision(), stored.Revision())
		}
		if clusters := v3(t, s, discovery.ClusterType, nodeA); !strings.Contains(string(clusters.Body), "out.web.example|http") {
			t.Errorf("clusters: %s", clusters.Body)
		}
	})
}
