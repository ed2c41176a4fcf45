package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// TestNoWriteIsDoneTwice: an etcd that is frozen does the writes that it was
// sent once it thaws. A client that was told to try again would have two
// objects of one create.
func TestNoWriteIsDoneTwice(t *testing.T) {
	outside.Slow(t)
	const creates = 16
	external := startEtcd(t)
	quiet := slog.New(slog.DiscardHandler)
	dialled, err := etcd.Dial(t.Context(), etcd.DialOptions{Endpoints: []string{external.URL()}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	objects := etcd.New(dialled, etcd.DefaultPrefix, quiet)
	handler := server.New(server.Options{Store: store.Strict(objects), Reads: objects, RequestTimeout: 500 * time.Millisecond}).Handler()
	var sent atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: srv.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	rules := client.Resource(schema.GroupVersionResource{Group: "config.istio.io", Version: "v1alpha2", Resource: "routerules"}).Namespace("default")
	if _, err := rules.Create(t.Context(), generated("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	sent.Store(0)
	external.Pause()
	var all errgroup.Group
	for i := range creates {
		all.Go(func() error {
			_, err := rules.Create(t.Context(), generated(fmt.Sprint("create-", i)), metav1.CreateOptions{})
			if _, again := apierrors.SuggestsClientDelay(err); !apierrors.IsTimeout(err) || again {
				return fmt.Errorf("create %d: %v", i, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if n := sent.Load(); n != creates {
		t.Errorf("%d creates were sent %d times", creates, n)
	}
	external.Resume()

	// A write that is answered comes after those that were not.
	for err = fmt.Errorf("not yet"); err != nil; {
		if _, err = rules.Create(t.Context(), generated("after"), metav1.CreateOptions{}); err != nil && !apierrors.IsTimeout(err) {
			t.Fatal(err)
		}
	}
	list, err := rules.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, o := range list.Items {
		made[o.GetLabels()["of"]]++
	}
	for i := range creates {
		if n := made[fmt.Sprint("create-", i)]; n > 1 {
			t.Errorf("create %d made %d objects", i, n)
		}
	}
}

func generated(of string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.istio.io/v1alpha2", "kind": "RouteRule",
		"metadata": map[string]any{"generateName": "rule-", "labels": map[string]any{"of": of}},
		"spec":     map[string]any{"destination": map[string]any{"name": "reviews"}},
	}}
}
