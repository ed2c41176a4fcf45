package etcd

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestGivenWayIsNotForgotten checks that changed objects whose records were dropped for
// room are not left out.
func TestGivenWayIsNotForgotten(t *testing.T) {
	ctx, log := t.Context(), slog.New(slog.DiscardHandler)
	e, err := embedded.Start(ctx, embedded.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s := NewEmbedded(e, DefaultPrefix, log)
	var then int64
	for i, write := range []func(context.Context, *schema.Object) (*schema.Object, error){s.Create, s.Update} {
		for _, name := range []string{"a", "b"} {
			o, err := write(ctx, storetest.Rule(t, "default", name, i))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				then = o.Revision()
			}
		}
	}
	for range 2 { // The creates, and the first of the updates.
		if _, err := s.giveWay(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.Changes(ctx, store.Scope{Namespace: "default"}, then); !errors.Is(err, store.ErrExpired) {
		t.Errorf("%d of 2 changes are known: %v", len(found), err)
	}
	b := store.Scope{Kind: storetest.Kind(t, "RouteRule"), Namespace: "default", Name: "b"}
	if found, err := s.Changes(ctx, b, then); err != nil || len(found) != 1 {
		t.Errorf("of the one that has a record: %d, %v", len(found), err)
	}
}
