package server_test

import (
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
func (w *world) watchKinds(query string, headers ...string) *watching {
	w.Helper()
	return w.follow(kindsPath+query, headers...)
}

// both creates a rule and a policy with the same name, in one transaction.
func (w *world) both(namespace, name string) (revision int64) {
	w.Helper()
	return w.createAll(schema.Key{Kind: "RouteRule", Namespace: namespace, Name: name}, schema.Key{Kind: "DestinationPolicy", Namespace: namespace, Name: name})
}

// wantRun reads to a bookmark, and requires that many events before it.
func (w *watching) wantRun(revision int64, events int) {
	w.t.Helper()
	for n := 0; ; n++ {
		f, ok := w.next()
		if !ok {
			w.t.Fatal("the stream ended")
		}
		if f.Type != "BOOKMARK" {
			continue
		}
		var o object
		if err := json.Unmarshal(f.Object, &o); err != nil || o.Kind != "Object" || mustRevision(w.t, o) != revision || n != events {
			w.t.Errorf("%d events, then %s; want %d to revision %d", n, f.Object, events, revision)
		}
		return
	}
}

// TestWatchKinds checks that the changes of a transaction in several kinds are one
// run of events, also for a client that resumes.
func TestWatchKinds(t *testing.T) {
	w := start(t)
	first := w.both("default", "a")
	all := w.watchKinds("allowWatchBookmarks=true")
	all.wantRun(first, 2)
	one := w.watchKinds("kinds=RouteRule,RouteRule&allowWatchBookmarks=true")
	one.wantRun(first, 1)
	here := w.watchKinds("namespace=default" + stateFirst)
	here.wantRun(first, 2)

	second := w.both("default", "b")
	all.wantRun(second, 2)
	one.wantRun(second, 1)
	here.wantRun(second, 2)
	third := w.both("other", "c")
	all.wantRun(third, 2)
	one.wantRun(third, 1)
	w.watchKinds(fmt.Sprintf("resourceVersion=%d&wholeRevisions=true&allowWatchBookmarks=true", second)).wantRun(third, 2)
	w.watchKinds(fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", second)).wantRun(third, 4) // its own again
	w.watchKinds("kinds=DestinationPolicy&fieldSelector=metadata.name%3Db&labelSelector=!none").want("ADDED b")
	w.watchKinds("kinds=Gateway,DestinationPolicy&namespace=other").want("ADDED c")
}

// TestSourceOfKinds checks that server-sent events have an id only where a
// transaction ends.
func TestSourceOfKinds(t *testing.T) {
	w := start(t)
	first := w.both("default", "a")
	second := w.both("default", "b")
	watch := w.watchKinds("", asEvents, fmt.Sprintf("Last-Event-ID: %d", first))
	source := &source{t: t, lines: watch.lines}
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
	w, _, stop := serve(t, nil)
	first := w.both("default", "a")
	watch := w.watchKinds("allowWatchBookmarks=true")
	watch.wantRun(first, 2)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	watch.wantEnd()
	next := httptest.NewServer(server.New(server.Options{Store: w.store, Reads: w.store}).Handler())
	t.Cleanup(next.Close)
	w.url = next.URL
	second := w.both("default", "b")
	w.watchKinds(fmt.Sprintf("resourceVersion=%d&wholeRevisions=true&allowWatchBookmarks=true", first)).wantRun(second, 2)
	w.store.Compact(second)
	w.watchKinds(fmt.Sprintf("resourceVersion=%d", first)).want("ERROR 410")
}

// TestBadWatchKinds checks that misspelt or empty kinds do not mean all.
func TestBadWatchKinds(t *testing.T) {
	w := start(t)
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
		if got := w.want(c.code, "GET", kindsPath+c.query, ""); !strings.Contains(got.text, c.says) {
			t.Errorf("%s: no %q in %s", c.query, c.says, got.text)
		}
	}
	w.want(http.StatusNotAcceptable, "GET", kindsPath, "", asTable)
	w.want(http.StatusBadRequest, "HEAD", kindsPath, "")
	w.want(http.StatusMethodNotAllowed, "POST", kindsPath, "")
}
