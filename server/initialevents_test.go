package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pilot-api/pilot-api/server"
)

const (
	stateFirst = "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true"
	noState    = "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=false"
)

// bookmark reads a bookmark and returns its revision and whether it ends the state.
func (w *watching) bookmark() (revision int64, endsState bool) {
	w.t.Helper()
	f, _ := w.next()
	var o object
	if err := json.Unmarshal(f.Object, &o); err != nil || f.Type != "BOOKMARK" {
		w.t.Fatalf("got %s %s, want a bookmark", f, f.Object)
	}
	return mustRevision(w.t, o), o.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// TestInitialEvents checks that the state comes first, whatever the
// resourceVersion, and that one bookmark after it marks its end.
func TestInitialEvents(t *testing.T) {
	w := start(t)
	a := w.create("a").Metadata.ResourceVersion
	b := w.create("b", "labels: {team: red}")
	for _, query := range []string{"", "&resourceVersion=0", "&resourceVersion=" + a} {
		watch := w.watch(stateFirst + query)
		watch.want("ADDED a", "ADDED b")
		if at, ends := watch.bookmark(); at != mustRevision(t, b) || !ends {
			t.Errorf("%q: a bookmark at %d that ends the state: %v", query, at, ends)
		}
	}
	watch := w.watch(stateFirst + "&labelSelector=team%3Dred")
	watch.want("ADDED b")
	if _, ends := watch.bookmark(); !ends {
		t.Error("nobody says that the selected state ends")
	}
	w.put("a", 50, "labels: {team: red}")
	watch.want("ADDED a")
	if _, ends := watch.bookmark(); ends {
		t.Error("a later bookmark ends the state again")
	}
}

// TestNoInitialEvents checks watches of changes only, from the present state or
// from a revision.
func TestNoInitialEvents(t *testing.T) {
	w := start(t)
	a := w.create("a").Metadata.ResourceVersion
	w.create("b")
	w.watch(noState+"&resourceVersion="+a).want("ADDED b", "BOOKMARK")
	watch := w.watch(noState)
	if _, ends := watch.bookmark(); ends {
		t.Error("a state ends that was not asked for")
	}
	w.create("c")
	watch.want("ADDED c")
}

// TestInitialEventsFail checks that a revision that never comes fails with a status
// code. An expired one does not fail, because every state is newer than it.
func TestInitialEventsFail(t *testing.T) {
	w := start(t, func(o *server.Options) { o.RevisionTimeout = 1 })
	old := w.create("a").Metadata.ResourceVersion
	w.store.Compact(mustRevision(t, w.put("a", 50)))
	w.watch(stateFirst+"&resourceVersion="+old).want("ADDED a", "BOOKMARK")
	w.watch(noState + "&resourceVersion=" + old).want("ERROR 410")
	w.want(http.StatusGatewayTimeout, "GET", rulesPath+"?watch=true&resourceVersion=999"+stateFirst, "")
	w.want(http.StatusUnprocessableEntity, "GET", rulesPath+"?watch=true&includeObject=None"+stateFirst, "", asTable)
}

// TestInitialEventsOfATable checks that the bookmark which ends the state is a row
// without cells, because only rows have metadata.
func TestInitialEventsOfATable(t *testing.T) {
	w := start(t)
	a := w.create("a")
	watch := w.watch(stateFirst, asTable)
	first, _ := watch.next()
	second, _ := watch.next()
	var state, end metav1.Table
	if err := cmp.Or(json.Unmarshal(first.Object, &state), json.Unmarshal(second.Object, &end)); err != nil {
		t.Fatal(err)
	}
	if first.Type != "ADDED" || len(state.Rows) != 1 || second.Type != "BOOKMARK" || len(end.Rows) != 1 {
		t.Fatalf("got %s %s\n%s %s", first, first.Object, second, second.Object)
	}
	var last metav1.PartialObjectMetadata
	if err := json.Unmarshal(end.Rows[0].Object.Raw, &last); err != nil {
		t.Fatal(err)
	}
	if last.Annotations[metav1.InitialEventsAnnotationKey] != "true" || last.ResourceVersion != a.Metadata.ResourceVersion ||
		end.ResourceVersion != a.Metadata.ResourceVersion || len(end.Rows[0].Cells) != len(state.ColumnDefinitions) {
		t.Errorf("the state ends with %s", second.Object)
	}
}

// TestInformerWithoutAList checks that an informer of client-go fills its store by
// watches alone, even if one cannot be resumed.
func TestInformerWithoutAList(t *testing.T) {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) {
		t.Skip("client-go lists: KUBE_FEATURE_WatchListClient is off")
	}
	w := start(t)
	w.create("a")
	asked := &requests{}
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.url, WrapTransport: asked.note})
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(ruleResource).Informer()
	seen := make(chan string, 100)
	if _, err := informer.AddEventHandler(tell(seen)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer never synced")
	}
	if diff := gocmp.Diff([]string{"default/a"}, informer.GetStore().ListKeys()); diff != "" {
		t.Errorf("store (-want +got):\n%s", diff)
	}
	w.create("b")
	for _, want := range []string{"add a", "add b"} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, watch := range asked.all() {
		if watch != "true" {
			t.Error("it listed")
		}
	}
}

// requests records for each request of a client whether it is a watch.
type requests struct {
	mu   sync.Mutex
	sent []string
}

func (r *requests) note(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.sent = append(r.sent, req.URL.Query().Get("watch"))
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (r *requests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
