package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Rule returns a valid RouteRule. The precedence makes specs differ.
func Rule(tb testing.TB, namespace, name string, precedence int) *schema.Object {
	tb.Helper()
	return object(tb, "RouteRule", namespace, name, fmt.Sprintf(
		`{"destination":{"name":"reviews"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}`, precedence))
}

// Large returns a RouteRule with an annotation of size bytes.
func Large(tb testing.TB, namespace, name string, size int) *schema.Object {
	tb.Helper()
	return with(tb, Rule(tb, namespace, name, 1), func(m *metav1.ObjectMeta) {
		m.Annotations = map[string]string{"payload": strings.Repeat("x", size)}
	})
}

// Service returns a valid ServiceEntry, an object of another group.
func Service(tb testing.TB, namespace, name string) *schema.Object {
	tb.Helper()
	return object(tb, "ServiceEntry", namespace, name, fmt.Sprintf(
		`{"hosts":["%s.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"location":"MESH_EXTERNAL","resolution":"DNS"}`, name))
}

func object(tb testing.TB, kindName, namespace, name, spec string) *schema.Object {
	tb.Helper()
	kind := Kind(tb, kindName)
	obj, err := schema.New(kind, metav1.ObjectMeta{Namespace: namespace, Name: name}, json.RawMessage(spec))
	if err != nil {
		tb.Fatal(err)
	}
	return obj
}

// Kind returns a kind that must exist.
func Kind(tb testing.TB, name string) *schema.Kind {
	tb.Helper()
	kind, ok := schema.KindByName(name)
	if !ok {
		tb.Fatalf("no kind %s", name)
	}
	return kind
}

// with returns an object with changed metadata.
func with(tb testing.TB, obj *schema.Object, change func(*metav1.ObjectMeta)) *schema.Object {
	tb.Helper()
	meta := *obj.Meta.DeepCopy()
	change(&meta)
	out, err := obj.WithMeta(meta)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// at returns an object with the given resourceVersion.
func at(tb testing.TB, obj *schema.Object, resourceVersion string) *schema.Object {
	tb.Helper()
	return with(tb, obj, func(m *metav1.ObjectMeta) { m.ResourceVersion = resourceVersion })
}

func (s *suite) create(obj *schema.Object) *schema.Object {
	s.Helper()
	out, err := s.Create(s.ctx, obj)
	if err != nil {
		s.Fatalf("create %s: %v", obj.Key(), err)
	}
	return out
}

func (s *suite) update(obj *schema.Object) *schema.Object {
	s.Helper()
	out, err := s.Update(s.ctx, obj)
	if err != nil {
		s.Fatalf("update %s: %v", obj.Key(), err)
	}
	return out
}

func (s *suite) delete(key schema.Key) *schema.Object {
	s.Helper()
	out, err := s.Delete(s.ctx, key, store.Preconditions{})
	if err != nil {
		s.Fatalf("delete %s: %v", key, err)
	}
	return out
}

func (s *suite) get(key schema.Key) *schema.Object {
	s.Helper()
	out, err := s.Get(s.ctx, key, store.ReadOptions{})
	if err != nil {
		s.Fatalf("get %s: %v", key, err)
	}
	return out
}

func (s *suite) list(scope store.Scope, opts store.ListOptions) *store.List {
	s.Helper()
	out, err := s.List(s.ctx, scope, opts)
	if err != nil {
		s.Fatalf("list %+v: %v", scope, err)
	}
	return out
}

func (s *suite) revision() int64 {
	s.Helper()
	revision, err := s.Revision(s.ctx)
	if err != nil {
		s.Fatalf("revision: %v", err)
	}
	return revision
}

// wantErr checks the kind of an error.
func (s *suite) wantErr(err, kind error) *store.Error {
	s.Helper()
	if !errors.Is(err, kind) {
		s.Fatalf("got error %v, want one of kind %q", err, kind)
	}
	var e *store.Error
	if !errors.As(err, &e) {
		s.Fatalf("error %v is no *store.Error", err)
	}
	return e
}

// wantInvalid checks that a call was refused with ErrInvalid.
func (s *suite) wantInvalid(_ *schema.Object, err error) *store.Error {
	s.Helper()
	return s.wantErr(err, store.ErrInvalid)
}

// wantSame checks that two objects are equal to the byte.
func (s *suite) wantSame(got, want *schema.Object) {
	s.Helper()
	if diff := cmp.Diff(string(want.JSON()), string(got.JSON())); diff != "" {
		s.Fatalf("not the same object (-want +got):\n%s", diff)
	}
}

// names returns the keys of objects with their revisions, in a short form.
func names(objs []*schema.Object) []string {
	out := make([]string, 0, len(objs))
	for _, o := range objs {
		out = append(out, fmt.Sprintf("%s@%s", o.Key(), o.Meta.ResourceVersion))
	}
	return out
}

func (s *suite) wantItems(list *store.List, want ...*schema.Object) {
	s.Helper()
	if diff := cmp.Diff(names(want), names(list.Items)); diff != "" {
		s.Fatalf("list at %d (-want +got):\n%s", list.Revision, diff)
	}
}
