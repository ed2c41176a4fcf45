package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestInformerReadsItsOwnWrites checks that a cache over a client reflects every write,
// of any kind, that was acknowledged before.
func TestInformerReadsItsOwnWrites(t *testing.T) {
	c := behind(t, memory.New())
	informer := cache.New(c, cache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = informer.Run(ctx) // It ends with ctx.
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if err := informer.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		want, err := c.CreateText(ctx, text(t, i))
		if err != nil {
			t.Fatal(err)
		}
		got, err := informer.Get(ctx, want.Key(), store.ReadOptions{})
		if err != nil || got.Meta.ResourceVersion != want.Meta.ResourceVersion {
			t.Fatalf("%s: cache has %v (%v), want resourceVersion %s", want.Key(), got, err, want.Meta.ResourceVersion)
		}
	}
}

// text returns an object whose kind depends on i.
func text(t *testing.T, i int) client.Text {
	kinds := []string{"RouteRule", "DestinationPolicy"}
	kind, ok := schema.KindByName(kinds[i%len(kinds)])
	if !ok {
		t.Fatalf("no kind %s", kinds[i%len(kinds)])
	}
	body := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x%d}\nspec: {destination: {name: reviews}}\n", kind.APIVersion(), kind.Kind, i)
	return client.Text{Kind: kind, Namespace: "default", Body: []byte(body)}
}
