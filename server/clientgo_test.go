package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/server"
)

var ruleResource = schema.GroupVersionResource{Group: "config.istio.io", Version: "v1alpha2", Resource: "routerules"}

func unstructuredRule(t *testing.T, name string, weight int) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(rule(name, weight)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return &o
}

// TestDiscoveryClient: client-go finds the kinds by itself.
func TestDiscoveryClient(t *testing.T) {
	w := start(t)
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: w.url})
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lists {
		for _, r := range l.APIResources {
			if len(r.Verbs) > 0 {
				got = append(got, r.Name)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"destinationpolicies", "destinationrules", "egressrules", "gateways", "ingressrules", "routerules",
		"serviceentries", "virtualservices", "workloadentries",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestInformer: an informer of client-go follows the server, through the end
// of its watches, without a relist.
func TestInformer(t *testing.T) {
	w := start(t, func(o *server.Options) { o.BookmarkInterval = 10 * time.Millisecond })
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.url})
	if err != nil {
		t.Fatal(err)
	}
	rules := client.Resource(ruleResource).Namespace("default")
	before, err := rules.Create(t.Context(), unstructuredRule(t, "before", 100), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 100)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(ruleResource).Informer()
	if _, err := informer.AddEventHandler(tell(seen)); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer never synced")
	}
	if got := <-seen; got != "add before" {
		t.Fatalf("got %q first", got)
	}

	if _, err := rules.Create(ctx, unstructuredRule(t, "after", 100), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := unstructuredRule(t, "before", 50)
	changed.SetResourceVersion(before.GetResourceVersion())
	if _, err := rules.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := rules.Delete(ctx, "after", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"add after", "update before", "delete after"} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// tell writes what an informer reports.
func tell(seen chan<- string) cache.ResourceEventHandler {
	say := func(verb string) func(any) {
		return func(o any) { seen <- fmt.Sprintf("%s %s", verb, o.(*unstructured.Unstructured).GetName()) }
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: say("add"), DeleteFunc: say("delete"),
		UpdateFunc: func(_, now any) { say("update")(now) },
	}
}
