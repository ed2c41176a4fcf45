package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func virtualServices(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.istio.io", Version: version, Resource: "virtualservices"}
}

func unstructuredVirtualService(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/" + version, "kind": "VirtualService",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"hosts": []any{name}, "http": []any{map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": name}}}}},
		},
	}}
}

// TestInformersOfEveryVersion checks that client-go creates and follows the same
// objects in each version, every one in the version of its own client, at the same
// resourceVersions.
func TestInformersOfEveryVersion(t *testing.T) {
	w := servertest.Start(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	versions := []string{"v1", "v1beta1", "v1alpha3"}
	create := func(version, name string) {
		made, err := client.Resource(virtualServices(version)).Namespace("default").Create(t.Context(), unstructuredVirtualService(version, name), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.GetAPIVersion(); got != "networking.istio.io/"+version {
			t.Errorf("created in %s, answered in %s", version, got)
		}
	}
	for _, version := range versions {
		create(version, "listed-"+version)
	}

	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	stop := make(chan struct{})
	defer factory.Shutdown()
	defer close(stop)
	seen := map[string]chan string{}
	for _, version := range versions {
		seen[version] = make(chan string, 100)
		informer := factory.ForResource(virtualServices(version)).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
			u := o.(*unstructured.Unstructured)
			seen[version] <- fmt.Sprint(u.GetAPIVersion(), " ", u.GetName(), " ", u.GetResourceVersion(), " ", u.GetUID())
		}}); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	for _, version := range versions {
		create(version, "watched-"+version)
	}

	all := client.Resource(virtualServices("v1")).Namespace("default")
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		want, got := map[string]bool{}, map[string]bool{}
		for _, u := range list.Items {
			want[fmt.Sprint("networking.istio.io/", version, " ", u.GetName(), " ", u.GetResourceVersion(), " ", u.GetUID())] = true
			got[<-seen[version]] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}
