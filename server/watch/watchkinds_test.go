package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
)

const kindsPath = "/apis/registry.istio.io/v1/watch?"

// watchKinds opens a watch of several kinds.
func watchKinds(w *servertest.World, query string, headers ...string) *servertest.Watching {
	w.Helper()
	return w.Follow(kindsPath+query, headers...)
}

// both creates a rule and a policy with the same name, in one transaction.
func both(w *servertest.World, namespace, name string) (revision int64) {
	w.Helper()
	return w.CreateAll(schema.Key{Kind: "RouteRule", Namespace: namespace, Name: name}, schema.Key{Kind: "DestinationPolicy", Namespace: namespace, Name: name})
}

// wantRun reads to a bookmark, and requires that many events before it.
func wantRun(w *servertest.Watching, revision int64, events int) {
	w.T.Helper()
	for n := 0; ; n++ {
		f, ok := w.Next()
		if !ok {
			w.T.Fatal("the stream ended")
		}
		if f.Type != "BOOKMARK" {
			continue
		}
		var o servertest.Object
		if err := json.Unmarshal(f.Object, &o); err != nil || o.Kind != "Object" || servertest.MustRevision(w.T, o) != revision || n != events {
			w.T.Errorf("%d events, then %s; want %d to revision %d", n, f.Object, events, revision)
		}
		return
	}
}

// TestWatchKinds checks that the changes of a transaction in several kinds are one
// run of events, also for a client that resumes.
func TestWatchKinds(t *testing.T) {
	w := servertest.Start(t)
	first := both(w, "default", "a")
	all := watchKinds(w, "allowWatchBookmarks=true")
	wantRun(all, first, 2)
	one := watchKinds(w, "kinds=RouteRule,RouteRule&allowWatchBookmarks=true")
	wantRun(one, first, 1)
	here := watchKinds(w, "namespace=default"+servertest.StateFirst)
	wantRun(here, first, 2)

	second := both(w, "default", "b")
	wantRun(all, second, 2)
	wantRun(one, second, 1)
	wantRun(here, second, 2)
	third := both(w, "other", "c")
	wantRun(all, third, 2)
	wantRun(one, third, 1)
	wantRun(watchKinds(w, fmt.Sprintf("resourceVersion=%d&wholeRevisions=true&allowWatchBookmarks=true", second)), third, 2)
	wantRun(watchKinds(w, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", second)), third, 4) // its own again
	watchKinds(w, "kinds=DestinationPolicy&fieldSelector=metadata.name%3Db&labelSelector=!none").Want("ADDED b")
	watchKinds(w, "kinds=Gateway,DestinationPolicy&namespace=other").Want("ADDED c")
}

// TestSourceOfKinds checks that server-sent events have an id only where a
// transaction ends.
func TestSourceOfKinds(t *testing.T) {
	w := servertest.Start(t)
	first := both(w, "default", "a")
	second := both(w, "default", "b")
	watch := watchKinds(w, "", asEvents, fmt.Sprintf("Last-Event-ID: %d", first))
	source := &source{t: t, lines: watch.Lines}
	source.next()
	if source.lastID == fmt.Sprint(second) {
		t.Error("the id is that of a revision of which half was told")
	}
	source.next()
	if source.lastID != fmt.Sprint(second) {
		t.Errorf("the id is %s after revision %d", source.lastID, second)
	}
}

// TestWatchKindsEnds as other watches do, and resumes with another server.
func TestWatchKindsEnds(t *testing.T) {
	w, _, stop := servertest.Serve(t, nil)
	first := both(w, "default", "a")
	watch := watchKinds(w, "allowWatchBookmarks=true")
	wantRun(watch, first, 2)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	watch.WantEnd()
	next := httptest.NewServer(server.New(server.Options{Store: w.Store, Reads: w.Store}).Handler())
	t.Cleanup(next.Close)
	w.URL = next.URL
	second := both(w, "default", "b")
	wantRun(watchKinds(w, fmt.Sprintf("resourceVersion=%d&wholeRevisions=true&allowWatchBookmarks=true", first)), second, 2)
	w.Store.Compact(second)
	watchKinds(w, fmt.Sprintf("resourceVersion=%d", first)).Want("ERROR 410")
}

// TestBadWatchKinds checks that misspelt or empty kinds do not mean all.
func TestBadWatchKinds(t *testing.T) {
	w := servertest.Start(t)
	for _, c := range []struct {
		query string
		code  int
		says  string
	}{
		{"kinds=Rule", 400, "RouteRule"},
		{"kinds=", 400, "VirtualService"},
		{"kinds=RouteRule,", 400, "VirtualService"},
		{"kinds=routerules", 400, "RouteRule"},
		{"kind=RouteRule", 400, "kinds"},
		{"namespace=", 400, "namespace"},
		{"namespace=a/b", 400, "namespace"},
		{"fieldSelector=spec.hosts%3Da", 400, "metadata.name or metadata.namespace"},
		{"labelSelector=a%3D%3D%3D", 400, "labelSelector"},
		{"limit=1", 400, "limit"},
		{"sendInitialEvents=true", 422, "NotOlderThan"},
		{"resourceVersion=x", 400, "resourceVersion"},
		{"resourceVersion=999", 504, "999"},
	} {
		if got := w.Want(c.code, "GET", kindsPath+c.query, ""); !strings.Contains(got.Text, c.says) {
			t.Errorf("%s: no %q in %s", c.query, c.says, got.Text)
		}
	}
	w.Want(http.StatusNotAcceptable, "GET", kindsPath, "", servertest.AsTable)
	w.Want(http.StatusBadRequest, "HEAD", kindsPath, "")
	w.Want(http.StatusMethodNotAllowed, "POST", kindsPath, "")
}
