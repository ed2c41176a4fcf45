package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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

// bookmark reads a bookmark and returns its revision and whether it ends the state.
func bookmark(w *servertest.Watching) (revision int64, endsState bool) {
	w.T.Helper()
	f, _ := w.Next()
	var o servertest.Object
	if err := json.Unmarshal(f.Object, &o); err != nil || f.Type != "BOOKMARK" {
		w.T.Fatalf("got %s %s, want a bookmark", f, f.Object)
	}
	return servertest.MustRevision(w.T, o), o.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// TestInitialEvents checks that the state comes first, whatever the
// resourceVersion, and that one bookmark after it marks its end.
func TestInitialEvents(t *testing.T) {
	w := servertest.Start(t)
	a := w.Create("a").Metadata.ResourceVersion
	b := w.Create("b", "labels: {team: red}")
	for _, query := range []string{"", "&resourceVersion=0", "&resourceVersion=" + a} {
		watch := w.Watch(servertest.StateFirst + query)
		watch.Want("ADDED a", "ADDED b")
		if at, ends := bookmark(watch); at != servertest.MustRevision(t, b) || !ends {
			t.Errorf("%q: a bookmark at %d that ends the state: %v", query, at, ends)
		}
	}
	watch := w.Watch(servertest.StateFirst + "&labelSelector=team%3Dred")
	watch.Want("ADDED b")
	if _, ends := bookmark(watch); !ends {
		t.Error("nobody says that the selected state ends")
	}
	w.Put("a", 50, "labels: {team: red}")
	watch.Want("ADDED a")
	if _, ends := bookmark(watch); ends {
		t.Error("a later bookmark ends the state again")
	}
}

// TestNoInitialEvents checks watches of changes only, from the present state or
// from a revision.
func TestNoInitialEvents(t *testing.T) {
	w := servertest.Start(t)
	a := w.Create("a").Metadata.ResourceVersion
	w.Create("b")
	w.Watch(servertest.NoState+"&resourceVersion="+a).Want("ADDED b", "BOOKMARK")
	watch := w.Watch(servertest.NoState)
	if _, ends := bookmark(watch); ends {
		t.Error("a state ends that was not asked for")
	}
	w.Create("c")
	watch.Want("ADDED c")
}

// TestInitialEventsFail checks that a revision that never comes fails with a status
// code. An expired one does not fail, because every state is newer than it.
func TestInitialEventsFail(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.RevisionTimeout = 1 })
	old := w.Create("a").Metadata.ResourceVersion
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	w.Watch(servertest.StateFirst+"&resourceVersion="+old).Want("ADDED a", "BOOKMARK")
	w.Watch(servertest.NoState + "&resourceVersion=" + old).Want("ERROR 410")
	w.Want(http.StatusGatewayTimeout, "GET", servertest.RulesPath+"?watch=true&resourceVersion=999"+servertest.StateFirst, "")
	w.Want(http.StatusUnprocessableEntity, "GET", servertest.RulesPath+"?watch=true&includeObject=None"+servertest.StateFirst, "", servertest.AsTable)
}

// TestInitialEventsOfATable checks that the bookmark which ends the state is a row
// without cells, because only rows have metadata.
func TestInitialEventsOfATable(t *testing.T) {
	w := servertest.Start(t)
	a := w.Create("a")
	watch := w.Watch(servertest.StateFirst, servertest.AsTable)
	first, _ := watch.Next()
	second, _ := watch.Next()
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
	w := servertest.Start(t)
	w.Create("a")
	asked := &requests{}
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL, WrapTransport: asked.note})
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(servertest.RuleResource).Informer()
	seen := make(chan string, 100)
	if _, err := informer.AddEventHandler(servertest.Tell(seen)); err != nil {
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
	w.Create("b")
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
	return servertest.RoundTrip(func(req *http.Request) (*http.Response, error) {
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
