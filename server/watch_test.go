package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// frame is one line of a watch.
type frame struct {
	Type   string
	Object json.RawMessage
}

// String returns "TYPE name", or the code of an ERROR.
func (f frame) String() string {
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

// watching is a running watch.
type watching struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  context.CancelFunc
}

func (w *world) watch(query string, headers ...string) *watching {
	w.Helper()
	return w.follow(rulesPath+"?watch=true"+query, headers...)
}

// follow opens the watch at a path.
func (w *world) follow(path string, headers ...string) *watching {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", w.url+path, nil)
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
	return &watching{w.T, lines, cancel}
}

// next waits for a frame; ok is false at the end of the stream.
func (w *watching) next() (f frame, ok bool) {
	w.t.Helper()
	if !w.lines.Scan() {
		return frame{}, false
	}
	if err := json.Unmarshal(w.lines.Bytes(), &f); err != nil {
		w.t.Fatalf("%v in %s", err, w.lines.Bytes())
	}
	return f, true
}

// want reads as many frames as are given and compares them.
func (w *watching) want(frames ...string) {
	w.t.Helper()
	var got []string
	for range frames {
		f, ok := w.next()
		if !ok {
			break
		}
		got = append(got, f.String())
	}
	if diff := cmp.Diff(frames, got); diff != "" {
		w.t.Fatalf("frames (-want +got):\n%s", diff)
	}
}

// wantEnd requires an orderly end of the stream.
func (w *watching) wantEnd() {
	w.t.Helper()
	if f, ok := w.next(); ok {
		w.t.Errorf("got %s, want the end", f)
	}
	if err := w.lines.Err(); err != nil {
		w.t.Errorf("the stream was cut: %v", err)
	}
}

func (w *world) put(name string, weight int, metadata ...string) object {
	w.Helper()
	return w.want(http.StatusOK, "PUT", rulesPath+"/"+name, rule(name, weight, metadata...), asYAML).object(w.T)
}

func (w *world) delete(name string) { w.want(http.StatusOK, "DELETE", rulesPath+"/"+name, "") }

func TestWatch(t *testing.T) {
	w := start(t)
	first := w.create("a")
	w.create("b")
	for _, query := range []string{"", "&resourceVersion=0"} {
		w.watch(query).want("ADDED a", "ADDED b")
	}
	resumed := w.watch("&resourceVersion=" + first.Metadata.ResourceVersion)
	whole := w.watch("")
	w.put("a", 50)
	w.delete("b")
	resumed.want("ADDED b", "MODIFIED a", "DELETED b")
	whole.want("ADDED a", "ADDED b", "MODIFIED a", "DELETED b")
	w.create("c")
	resumed.want("ADDED c")
}

// TestWatchSharesBytes checks that an event has the same text as a GET.
func TestWatchSharesBytes(t *testing.T) {
	w := start(t)
	w.create("a")
	f, _ := w.watch("").next()
	if got := w.do("GET", rulesPath+"/a", "").text; got != string(f.Object) {
		t.Errorf("event and GET differ:\n%s", cmp.Diff(got, string(f.Object)))
	}
}

// TestWatchDeletedRevision checks that the revision of a DELETED event is that of
// the deletion, so that a client can resume from it.
func TestWatchDeletedRevision(t *testing.T) {
	w := start(t)
	w.create("a")
	watch := w.watch("")
	w.delete("a")
	watch.want("ADDED a")
	f, _ := watch.next()
	var o object
	if err := json.Unmarshal(f.Object, &o); err != nil {
		t.Fatal(err)
	}
	if rev, _ := w.store.Revision(t.Context()); mustRevision(t, o) != rev {
		t.Errorf("resourceVersion of the deletion is %s, the store is at %d", o.Metadata.ResourceVersion, rev)
	}
}

func TestWatchSelectors(t *testing.T) {
	w := start(t)
	w.create("a", "labels: {team: red}")
	w.create("b")
	red := w.watch("&labelSelector=team%3Dred")
	named := w.watch("&fieldSelector=metadata.name%3Db")
	w.put("b", 50, "labels: {team: red}")
	w.put("a", 50, "labels: {team: red}")
	w.put("a", 40)
	w.put("a", 30)
	w.delete("a")
	w.delete("b")
	red.want("ADDED a", "ADDED b", "MODIFIED a", "DELETED a", "DELETED b")
	named.want("ADDED b", "MODIFIED b", "DELETED b")
}

func TestWatchTable(t *testing.T) {
	w := start(t)
	w.create("a")
	watch := w.watch("", asTable)
	w.create("b")
	for i, name := range []string{"a", "b"} {
		f, _ := watch.next()
		var table metav1.Table
		if err := json.Unmarshal(f.Object, &table); err != nil || table.Kind != "Table" || table.Rows[0].Cells[0] != name {
			t.Fatalf("frame %d: %v %s", i, err, f.Object)
		}
		if sent := len(table.ColumnDefinitions) > 0; sent != (i == 0) {
			t.Errorf("frame %d: columns sent: %v, want them in the first only", i, sent)
		}
	}
	w.want(http.StatusNotAcceptable, "GET", rulesPath+"?watch=true", "", "Accept: application/yaml")
}

func TestWatchBookmarks(t *testing.T) {
	w := start(t, func(o *server.Options) { o.BookmarkInterval = time.Millisecond })
	w.create("a")
	watch := w.watch("&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da")
	watch.want("ADDED a")
	last := w.create("b") // not selected, but the bookmarks get there
	for {
		f, ok := watch.next()
		var o object
		if !ok || f.Type != "BOOKMARK" || json.Unmarshal(f.Object, &o) != nil || o.Kind != "RouteRule" {
			t.Fatalf("got %s %s, want bookmarks", f, f.Object)
		}
		if mustRevision(t, o) >= mustRevision(t, last) {
			return
		}
	}
}

// TestWatchTimeout checks that a requested end comes with a last bookmark, at a
// revision that no event had.
func TestWatchTimeout(t *testing.T) {
	w := start(t)
	w.create("a")
	watch := w.watch("&timeoutSeconds=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnone")
	watch.want("BOOKMARK")
	watch.wantEnd()
}

func TestWatchCompacted(t *testing.T) {
	w := start(t)
	created := w.create("a")
	w.store.Compact(mustRevision(t, w.put("a", 50)))
	watch := w.watch("&allowWatchBookmarks=true&resourceVersion=" + created.Metadata.ResourceVersion)
	watch.want("ERROR 410")
	watch.wantEnd()
	w.want(http.StatusGone, "GET", rulesPath+"?resourceVersionMatch=Exact&resourceVersion="+created.Metadata.ResourceVersion, "")
}

// failing is a store whose watches end with an error after their first batch.
type failing struct {
	store.Reader
	err error
}

type failingWatcher struct {
	store.Watcher
	batches chan store.Batch
	err     error
}

func (f failing) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := f.Reader.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	one := make(chan store.Batch)
	go func() {
		defer close(one)
		select {
		case b := <-w.Batches():
			one <- b
		case <-ctx.Done():
		}
	}()
	return failingWatcher{w, one, f.err}, nil
}

func (f failingWatcher) Batches() <-chan store.Batch { return f.batches }
func (f failingWatcher) Err() error                  { return f.err }

// hasty is a store that forgets a revision before it is asked for its changes.
type hasty struct {
	store.Reader
	mem *memory.Store
}

func (h hasty) Repeat(scope store.Scope, revision int64) ([]store.Event, error) {
	h.mem.Compact(revision + 1)
	return h.mem.Repeat(scope, revision)
}

// TestWatchIsOvertaken checks that a watch does not go on without the changes to
// repeat, if they expire after the watch was accepted.
func TestWatchIsOvertaken(t *testing.T) {
	w := start(t, func(o *server.Options) { o.Reads = hasty{o.Reads, o.Reads.(*memory.Store)} })
	first := w.create("a")
	w.create("b")
	watch := w.watch("&resourceVersion=" + first.Metadata.ResourceVersion)
	watch.want("ERROR 410")
	watch.wantEnd()
}

// TestWatchFails checks that once the stream has begun, an expired revision is an
// ERROR event, and a resumable failure is a plain end after a bookmark.
func TestWatchFails(t *testing.T) {
	for _, c := range []struct {
		err    error
		frames []string
	}{
		{&store.Error{Kind: store.ErrExpired}, []string{"BOOKMARK", "ADDED a", "BOOKMARK", "ERROR 410"}},
		{fmt.Errorf("disk on fire"), []string{"BOOKMARK", "ADDED a", "BOOKMARK", "ERROR 500"}},
		{&store.Error{Kind: store.ErrSlow}, []string{"BOOKMARK", "ADDED a", "BOOKMARK"}},
		{&store.Error{Kind: store.ErrUnavailable}, []string{"BOOKMARK", "ADDED a", "BOOKMARK"}},
	} {
		w := start(t, func(o *server.Options) { o.Reads = failing{o.Reads, c.err} })
		watch := w.watch("&allowWatchBookmarks=true")
		w.create("a")
		watch.want(c.frames...)
		watch.wantEnd()
	}
}

func TestWatchLimit(t *testing.T) {
	w := start(t, func(o *server.Options) { o.MaxWatches = 1 })
	first := w.watch("")
	got := w.want(http.StatusTooManyRequests, "GET", rulesPath+"?watch=true", "")
	if got.Header.Get("Retry-After") == "" || got.status(t).Reason != metav1.StatusReasonTooManyRequests {
		t.Errorf("answer: %v %s", got.Header, got.text)
	}
	first.stop()
	w.untilSlotFree()
}

// TestWatchOfStoppedReader checks that a client that does not read is cut off by
// the write deadline, and keeps neither its place nor memory.
func TestWatchOfStoppedReader(t *testing.T) {
	outside.Slow(t)
	w := start(t, func(o *server.Options) {
		o.MaxWatches = 1
		o.WatchWriteTimeout = 50 * time.Millisecond
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\n\r\n", rulesPath)
	if _, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil); err != nil {
		t.Fatal(err)
	}
	w.want(http.StatusTooManyRequests, "GET", rulesPath+"?watch=true", "")
	big := "annotations: {note: " + strings.Repeat("x", 200<<10) + "}"
	w.create("big", big)
	for i := range 40 { // more than the kernel buffers
		w.put("big", i, big)
	}
	w.untilSlotFree()
}

// untilSlotFree tries until a watch is refused for its revision and no longer for
// lack of a place.
func (w *world) untilSlotFree() {
	w.Helper()
	for w.do("GET", rulesPath+"?watch=true&resourceVersion=999999", "").StatusCode != http.StatusGatewayTimeout {
		if w.Context().Err() != nil {
			w.Fatal("the slot is never given back")
		}
	}
}

// TestEventsOfUnknownPast checks that a store need not know the state before a
// change.
func TestEventsOfUnknownPast(t *testing.T) {
	w := start(t, func(o *server.Options) { o.Reads = forgetful{o.Reads} })
	w.create("a", "labels: {team: red}")
	red := w.watch("&labelSelector=team%3Dred")
	w.put("a", 50, "labels: {team: red}")
	w.put("a", 40)
	red.want("ADDED a", "MODIFIED a", "DELETED a")
}

// forgetful is a store that never returns the previous state.
type forgetful struct{ store.Reader }

func (f forgetful) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := f.Reader.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	out := make(chan store.Batch)
	go func() {
		defer close(out)
		for b := range w.Batches() {
			events := make([]store.Event, len(b.Events))
			for i, e := range b.Events {
				events[i] = store.Event{Type: e.Type, Object: e.Object}
			}
			select {
			case out <- store.Batch{Revision: b.Revision, Events: events}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return failingWatcher{w, out, ctx.Err()}, nil
}
