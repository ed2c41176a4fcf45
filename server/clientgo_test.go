package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

func unstructuredRule(t *testing.T, name string, weight int) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(servertest.Rule(name, weight)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return &o
}

// TestDiscoveryClient checks that client-go discovers the kinds.
func TestDiscoveryClient(t *testing.T) {
	w := servertest.Start(t)
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: w.URL})
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
		"authorizationpolicies", "destinationpolicies", "destinationrules", "egressrules", "gateways", "ingressrules", "peerauthentications", "requestauthentications", "rolebindings", "roles", "routerules",
		"secrets", "serviceaccounts", "serviceentries", "sidecars", "virtualservices", "workloadentries",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestInformer checks that an informer of client-go follows the server, through the
// end of its watches, without a relist.
func TestInformer(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.BookmarkInterval = 10 * time.Millisecond })
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	rules := client.Resource(servertest.RuleResource).Namespace("default")
	before, err := rules.Create(t.Context(), unstructuredRule(t, "before", 100), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 100)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(servertest.RuleResource).Informer()
	if _, err := informer.AddEventHandler(servertest.Tell(seen)); err != nil {
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

// TestFinalizersWithClientGo checks that a deleted object is first marked, and gone
// only when its finalizer is removed.
func TestFinalizersWithClientGo(t *testing.T) {
	w := servertest.Start(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	rules := client.Resource(servertest.RuleResource).Namespace("default")
	guarded := unstructuredRule(t, "guarded", 100)
	guarded.SetFinalizers([]string{"example.com/clean-up"})
	made, err := rules.Create(t.Context(), guarded, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := rules.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	uid := made.GetUID()
	foreground := metav1.DeletePropagationForeground
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground}
	for range 2 { // The second time changes nothing.
		if err := rules.Delete(t.Context(), "guarded", opts); err != nil {
			t.Fatal(err)
		}
	}
	marked, err := rules.Get(t.Context(), "guarded", metav1.GetOptions{})
	if err != nil || marked.GetDeletionTimestamp() == nil {
		t.Fatalf("after the delete: %v, %v", marked, err)
	}
	marked.SetFinalizers(nil)
	if _, err := rules.Update(t.Context(), marked, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
		event := <-seen.ResultChan()
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != want || o.GetDeletionTimestamp() == nil {
			t.Errorf("told %s %v, want %s", event.Type, event.Object, want)
		}
	}
	if _, err := rules.Get(t.Context(), "guarded", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("at the end: %v", err)
	}
}

// TestRetryWatcherLearnsOfTheEnd checks that a RetryWatcher which asks for expired
// changes is told so and stops asking.
func TestRetryWatcherLearnsOfTheEnd(t *testing.T) {
	w := servertest.Start(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	old := w.Create("a").Metadata.ResourceVersion
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	rules := client.Resource(servertest.RuleResource).Namespace("default")
	retry, err := watchtools.NewRetryWatcherWithContext(t.Context(), old, ruleWatcher{rules})
	if err != nil {
		t.Fatal(err)
	}
	event := <-retry.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("told %s %v", event.Type, err)
	}
	<-retry.Done()
}

// ruleWatcher adapts a resource to a RetryWatcher.
type ruleWatcher struct{ dynamic.ResourceInterface }

func (r ruleWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return r.Watch(ctx, opts)
}

// TestInformerSurvivesCompaction checks that an informer whose watch cannot be
// resumed lists again.
func TestInformerSurvivesCompaction(t *testing.T) {
	outside.Slow(t)
	stop := make(chan struct{})
	var compacted atomic.Bool
	w := servertest.Start(t, func(o *server.Options) { o.Reads = &interrupted{Reader: o.Reads, stop: stop, compacted: &compacted} })
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	w.Create("a")
	seen := make(chan string, 100)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	if _, err := factory.ForResource(servertest.RuleResource).Informer().AddEventHandler(servertest.Tell(seen)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if got := <-seen; got != "add a" {
		t.Fatalf("got %q first", got)
	}
	w.Put("a", 40)
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	compacted.Store(true)
	close(stop)
	for got := range seen {
		if got == "update a" {
			break
		}
	}
}

// interrupted holds back its first watches, ends them on request, and behaves
// normally from then on.
type interrupted struct {
	store.Reader
	stop      chan struct{}
	compacted *atomic.Bool
}

func (i *interrupted) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	if i.compacted.Load() {
		return i.Reader.Watch(ctx, scope, after)
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := i.Reader.Watch(ctx, scope, after)
	if err != nil {
		cancel()
		return nil, err
	}
	first := make(chan store.Batch, 1)
	first <- store.Batch{Revision: after}
	go func() { <-i.stop; cancel(); close(first) }()
	return servertest.FailingWatcher{Watcher: w, Changes: first, Reason: &store.Error{Kind: store.ErrUnavailable}}, nil
}
