package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

func TestStrictRefuses(t *testing.T) {
	ctx := t.Context()
	s := store.Strict(memory.New())
	kind := storetest.Kind(t, "RouteRule")
	bad, err := schema.New(kind, metav1.ObjectMeta{Name: "Not_A_Name", Namespace: "default"}, json.RawMessage(`{"rout":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	good := storetest.Rule(t, "default", "a", 1)
	versioned := func(v string) *schema.Object {
		meta := good.Meta
		meta.ResourceVersion = v
		obj, err := good.WithMeta(meta)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	for _, c := range []struct {
		name string
		call func() error
		says string
	}{
		{"an invalid object", func() error { _, err := s.Create(ctx, bad); return err }, "rout"},
		{"an invalid object in an update", func() error { _, err := s.Update(ctx, bad); return err }, "rout"},
		{"a resourceVersion on create", func() error { _, err := s.Create(ctx, versioned("7")); return err }, "must be empty"},
		{"a resourceVersion that is none", func() error { _, err := s.Update(ctx, versioned("x7")); return err }, "positive decimal"},
		{"a precondition that is none", func() error {
			_, err := s.Delete(ctx, good.Key(), store.Preconditions{ResourceVersion: "-1"})
			return err
		}, "preconditions.resourceVersion"},
		{"a key without a name", func() error { _, err := s.Get(ctx, schema.Key{Kind: "RouteRule"}, store.ReadOptions{}); return err }, "known kind"},
		{"a delete of no kind", func() error {
			_, err := s.Delete(ctx, schema.Key{Kind: "Rule", Namespace: "a", Name: "b"}, store.Preconditions{})
			return err
		}, "known kind"},
		{"one object twice in a transaction", func() error {
			_, err := s.Txn(ctx, []store.Op{{Verb: store.OpCreate, Object: good}, {Verb: store.OpDelete, Key: good.Key()}})
			return err
		}, "operations 0 and 1"},
		{"too large a transaction", func() error { _, err := s.Txn(ctx, make([]store.Op, store.MaxTxnOps+1)); return err }, "at most 10000"},
		{"an operation of no verb", func() error { _, err := s.Txn(ctx, []store.Op{{Verb: "replace", Object: good}}); return err }, "replace"},
		{"a delete with an object", func() error { _, err := s.Txn(ctx, []store.Op{{Verb: store.OpDelete, Object: good}}); return err }, "a key alone"},
		{"a name without a kind", func() error { _, err := s.List(ctx, store.Scope{Name: "a"}, store.ListOptions{}); return err }, "needs a kind"},
		{"two revisions for a list", func() error {
			_, err := s.List(ctx, store.Scope{}, store.ListOptions{Exact: 1, AtLeast: 1})
			return err
		}, "either"},
		{"a limit below zero", func() error { _, err := s.List(ctx, store.Scope{}, store.ListOptions{Limit: -1}); return err }, "limit"},
		{"a list after nothing that could be", func() error {
			_, err := s.List(ctx, store.Scope{}, store.ListOptions{After: schema.Key{Kind: "RouteRule", Namespace: "a"}})
			return err
		}, "to list after"},
		{"a list after a key and at least a revision", func() error {
			_, err := s.List(ctx, store.Scope{}, store.ListOptions{After: good.Key(), AtLeast: 1})
			return err
		}, "exact revision"},
		{"a watch from below zero", func() error { _, err := s.Watch(ctx, store.Scope{}, -1); return err }, "revision 0 or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.call()
			if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want ErrInvalid that says %q", err, c.says)
			}
		})
	}
}

func TestStrictNamesTheOperation(t *testing.T) {
	s := store.Strict(memory.New())
	good := storetest.Rule(t, "default", "a", 1)
	_, err := s.Txn(context.Background(), []store.Op{
		{Verb: store.OpCreate, Object: good},
		{Verb: store.OpDelete, Key: schema.Key{Kind: "RouteRule"}},
	})
	var e *store.Error
	if !errors.As(err, &e) || e.Index != 1 {
		t.Errorf("got %v", err)
	}
}
