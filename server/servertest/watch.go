package servertest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/pilot-api/pilot-api/store"
)

// Frame is one line of a watch.
type Frame struct {
	Type   string
	Object json.RawMessage
}

// String returns "TYPE name", or the code of an ERROR.
func (f Frame) String() string {
	var o struct {
		Metadata metav1.ObjectMeta
		Code     int
	}
	_ = json.Unmarshal(f.Object, &o)
	if o.Code != 0 {
		return fmt.Sprintf("%s %d", f.Type, o.Code)
	}
	return strings.TrimSpace(f.Type + " " + o.Metadata.Name)
}

// Watching is a running watch.
type Watching struct {
	T     *testing.T
	Lines *bufio.Scanner
	Stop  context.CancelFunc
}

func (w *World) Watch(query string, headers ...string) *Watching {
	w.Helper()
	return w.Follow(RulesPath+"?watch=true"+query, headers...)
}

// Follow opens the watch at a path.
func (w *World) Follow(path string, headers ...string) *Watching {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", w.URL+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		w.Fatalf("watch: got %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	return &Watching{w.T, lines, cancel}
}

// Next waits for a frame; ok is false at the end of the stream.
func (w *Watching) Next() (f Frame, ok bool) {
	w.T.Helper()
	if !w.Lines.Scan() {
		return Frame{}, false
	}
	if err := json.Unmarshal(w.Lines.Bytes(), &f); err != nil {
		w.T.Fatalf("%v in %s", err, w.Lines.Bytes())
	}
	return f, true
}

// Want reads as many frames as are given and compares them.
func (w *Watching) Want(frames ...string) {
	w.T.Helper()
	var got []string
	for range frames {
		f, ok := w.Next()
		if !ok {
			break
		}
		got = append(got, f.String())
	}
	if diff := cmp.Diff(frames, got); diff != "" {
		w.T.Fatalf("frames (-want +got):\n%s", diff)
	}
}

// WantEnd requires an orderly end of the stream.
func (w *Watching) WantEnd() {
	w.T.Helper()
	if f, ok := w.Next(); ok {
		w.T.Errorf("got %s, want the end", f)
	}
	if err := w.Lines.Err(); err != nil {
		w.T.Errorf("the stream was cut: %v", err)
	}
}

func (w *World) Put(name string, weight int, metadata ...string) Object {
	w.Helper()
	return w.Want(http.StatusOK, "PUT", RulesPath+"/"+name, Rule(name, weight, metadata...), AsYAML).Object(w.T)
}

func (w *World) Delete(name string) { w.Want(http.StatusOK, "DELETE", RulesPath+"/"+name, "") }

type FailingWatcher struct {
	store.Watcher
	Changes <-chan store.Batch
	Reason  error
}

func (f FailingWatcher) Batches() <-chan store.Batch { return f.Changes }
func (f FailingWatcher) Err() error                  { return f.Reason }

const (
	StateFirst = "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true"
	NoState    = "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=false"
)

type RoundTrip func(*http.Request) (*http.Response, error)

func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var RuleResource = schema.GroupVersionResource{Group: "config.istio.io", Version: "v1alpha2", Resource: "routerules"}

// Tell writes what an informer reports.
func Tell(seen chan<- string) cache.ResourceEventHandler {
	say := func(verb string) func(any) {
		return func(o any) { seen <- fmt.Sprintf("%s %s", verb, o.(*unstructured.Unstructured).GetName()) }
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: say("add"), DeleteFunc: say("delete"),
		UpdateFunc: func(_, now any) { say("update")(now) },
	}
}
