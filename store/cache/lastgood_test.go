package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// TestLastGoodStateIsFollowed checks that, for a value that is damaged while the server
// runs, proxies get the last good state until it is repaired, while readers get the
// damage.
func TestLastGoodStateIsFollowed(t *testing.T) {
	ctx := testContext(t)
	server := etcdtest.Start(t)
	client := server.Client()
	source := etcd.New(client, etcd.DefaultPrefix, quiet)
	c := start(t, source, cache.Options{})
	key := schema.Key{Kind: "RouteRule", Namespace: "default", Name: "a"}
	place := etcd.DefaultPrefix + "/objects/config.istio.io/routerules/default/a"
	create(t, ctx, source, "a")
	create(t, ctx, source, "b")

	followed := func() string {
		if _, err := c.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		objs, _, _ := c.Snapshot()
		names := []string{}
		for _, o := range objs {
			names = append(names, o.Meta.Name)
		}
		slices.Sort(names)
		return fmt.Sprint(names)
	}
	// changes returns the changes for a follower that knew the state at a revision.
	changes := func(revision int64) []string {
		all, _, ok := c.Since(revision)
		if !ok {
			return []string{"unknown"}
		}
		got := []string{}
		for _, one := range all {
			got = append(got, said(one))
		}
		return got
	}
	damage := func() int64 {
		t.Helper()
		put, err := client.Put(ctx, place, "{")
		if err != nil {
			t.Fatal(err)
		}
		err = testbed.Until(ctx, "the damage", func(context.Context) error {
			if _, err := c.Get(ctx, key, store.ReadOptions{}); !errors.Is(err, store.ErrUnreadable) {
				return fmt.Errorf("the reader is told %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return put.Header.Revision
	}

	if got := followed(); got != "[a b]" {
		t.Fatal(got)
	}
	_, before, _ := c.Snapshot()
	damaged := damage()
	for range 2 { // A second damage does not end it.
		if got := followed(); got != "[a b]" {
			t.Errorf("with a damaged, %s are followed", got)
		}
		if got := changes(before); len(got) != 0 {
			t.Errorf("the damage is told as %s", got)
		}
		if last := c.LastGood(key); last == nil || last.Meta.Name != "a" {
			t.Errorf("the last good state is %v", last)
		}
		damage()
	}
	update(t, ctx, source, "a", 2)
	if got := followed(); got != "[a b]" || c.LastGood(key) != nil {
		t.Errorf("mended, %s are followed", got)
	}
	if got := changes(damaged); !slices.Equal(got, []string{"unknown"}) {
		t.Errorf("since the damage: %s", got)
	}
	damage()
	if _, err := source.Delete(ctx, key, store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if got := followed(); got != "[b]" || c.LastGood(key) != nil {
		t.Errorf("deleted, %s are followed", got)
	}
	if got := changes(before); !slices.Equal(got, []string{"unknown"}) {
		t.Errorf("over the deletion: %s", got)
	}
	// A state that was made and damaged while the feed was down is followed as well.
	_, before, _ = c.Snapshot()
	made := create(t, ctx, source, "a")
	if _, err := c.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	damage()
	if got := changes(before); !slices.Equal(got, []string{"nothing→a@" + made.Meta.ResourceVersion}) {
		t.Errorf("made and damaged: %s", got)
	}
	// A server that starts now finds the state in the past, as far as the store keeps
	// it.
	latest, err := source.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, compacted := range []bool{false, true} {
		if compacted {
			if _, err := client.Compact(ctx, latest); err != nil {
				t.Fatal(err)
			}
		}
		fresh := start(t, source, cache.Options{})
		if _, err := fresh.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if last := fresh.LastGood(key); (last == nil) != compacted || len(fresh.Unreadable(store.Scope{})) != 1 {
			t.Errorf("with the past compacted %v, a new server knows %v, and cannot read %v", compacted, last, fresh.Unreadable(store.Scope{}))
		}
	}
}
