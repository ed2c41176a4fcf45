package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
)

// unhurried passes answers on without the header that makes client-go repeat the
// request.
func unhurried(next http.RoundTripper) http.RoundTripper {
	return servertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	})
}

// TestTypedErrors checks that client-go's functions recognize the errors.
func TestTypedErrors(t *testing.T) {
	outside.Slow(t)
	w := servertest.Start(t, func(o *server.Options) { o.MaxWatches, o.RevisionTimeout = 1, 1 })
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL, WrapTransport: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	ctx, rules := t.Context(), client.Resource(servertest.RuleResource).Namespace("default")
	old := w.Create("a").Metadata.ResourceVersion
	w.Create("b")
	first, err := rules.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	running, err := rules.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()

	stale := unstructuredRule(t, "a", 10)
	stale.SetResourceVersion(old)
	invalid := unstructuredRule(t, "c", 100)
	if err := unstructured.SetNestedField(invalid.Object, "", "spec", "destination", "name"); err != nil {
		t.Fatal(err)
	}
	large := unstructuredRule(t, "c", 100)
	large.SetAnnotations(map[string]string{"text": string(make([]byte, 2<<20))})
	nobodys := types.UID("nobodys")
	for name, c := range map[string]struct {
		is func(error) bool
		do func() error
	}{
		"not found":    {apierrors.IsNotFound, func() error { _, err := rules.Get(ctx, "none", metav1.GetOptions{}); return err }},
		"gone already": {apierrors.IsNotFound, func() error { return rules.Delete(ctx, "none", metav1.DeleteOptions{}) }},
		"updated before it is there": {apierrors.IsNotFound, func() error {
			_, err := rules.Update(ctx, unstructuredRule(t, "none", 10), metav1.UpdateOptions{})
			return err
		}},
		"taken": {apierrors.IsAlreadyExists, func() error {
			_, err := rules.Create(ctx, unstructuredRule(t, "a", 100), metav1.CreateOptions{})
			return err
		}},
		"changed meanwhile": {apierrors.IsConflict, func() error { _, err := rules.Update(ctx, stale, metav1.UpdateOptions{}); return err }},
		"another one of that name": {apierrors.IsConflict, func() error {
			return rules.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &nobodys}})
		}},
		"wrong": {apierrors.IsInvalid, func() error { _, err := rules.Create(ctx, invalid, metav1.CreateOptions{}); return err }},
		"too large": {apierrors.IsRequestEntityTooLargeError, func() error {
			_, err := rules.Create(ctx, large, metav1.CreateOptions{})
			return err
		}},
		"the next page of what is forgotten": {apierrors.IsResourceExpired, func() error {
			_, err := rules.List(ctx, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
			return err
		}},
		"a state that is forgotten": {apierrors.IsResourceExpired, func() error {
			_, err := rules.List(ctx, metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			return err
		}},
		"a state that never comes": {apierrors.IsTimeout, func() error { _, err := rules.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "999"}); return err }},
		"one watch too many":       {apierrors.IsTooManyRequests, func() error { _, err := rules.Watch(ctx, metav1.ListOptions{}); return err }},
		"no selector":              {apierrors.IsBadRequest, func() error { _, err := rules.List(ctx, metav1.ListOptions{LabelSelector: "a=b=c"}); return err }},
		"what is computed":         {apierrors.IsMethodNotSupported, func() error { _, err := rules.UpdateStatus(ctx, stale, metav1.UpdateOptions{}); return err }},
		"a strategic patch": {apierrors.IsUnsupportedMediaType, func() error {
			_, err := rules.Patch(ctx, "a", types.StrategicMergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		}},
		"no such resource": {apierrors.IsNotFound, func() error {
			_, err := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).List(ctx, metav1.ListOptions{})
			return err
		}},
	} {
		if err := c.do(); !c.is(err) {
			t.Errorf("%s: got %T %v (%s)", name, err, err, apierrors.ReasonForError(err))
		}
	}
	// An expired list goes on in the newest state, as its answer says.
	_, err = rules.List(ctx, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().ListMeta.Continue == "" {
		t.Fatalf("no way to go on: %v", err)
	}
	rest, err := rules.List(ctx, metav1.ListOptions{Limit: 1, Continue: status.Status().ListMeta.Continue})
	if err != nil || len(rest.Items) != 1 || rest.Items[0].GetName() != "b" {
		t.Errorf("the page after it: %v, %v", rest, err)
	}
}

// TestRESTMapper checks that client-go maps kinds, resources and short names of
// unknown kinds to their URLs.
func TestRESTMapper(t *testing.T) {
	w := servertest.Start(t)
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	cached := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(warning string) { t.Error(warning) })
	kind := schema.GroupKind{Group: "networking.istio.io", Kind: "VirtualService"}
	mapping, err := mapper.RESTMapping(kind)
	if err != nil {
		t.Fatal(err)
	}
	want := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	if mapping.Resource != want || mapping.Scope.Name() != "namespace" {
		t.Errorf("%s is %v in a %s", kind, mapping.Resource, mapping.Scope.Name())
	}
	for _, name := range []string{"vs", "virtualservice", "virtualservices"} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
		if err != nil || got.GroupKind() != kind {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	all, resources, err := d.ServerGroupsAndResources()
	if err != nil || len(all) == 0 || len(resources) == 0 {
		t.Errorf("discovery: %d groups, %d lists, %v", len(all), len(resources), err)
	}
}
