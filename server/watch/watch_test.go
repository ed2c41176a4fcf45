package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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

func TestWatch(t *testing.T) {
	w := servertest.Start(t)
	first := w.Create("a")
	w.Create("b")
	for _, query := range []string{"", "&resourceVersion=0"} {
		w.Watch(query).Want("ADDED a", "ADDED b")
	}
	resumed := w.Watch("&resourceVersion=" + first.Metadata.ResourceVersion)
	whole := w.Watch("")
	w.Put("a", 50)
	w.Delete("b")
	resumed.Want("ADDED b", "MODIFIED a", "DELETED b")
	whole.Want("ADDED a", "ADDED b", "MODIFIED a", "DELETED b")
	w.Create("c")
	resumed.Want("ADDED c")
}

// TestWatchSharesBytes checks that an event has the same text as a GET.
func TestWatchSharesBytes(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	f, _ := w.Watch("").Next()
	if got := w.Do("GET", servertest.RulesPath+"/a", "").Text; got != string(f.Object) {
		t.Errorf("event and GET differ:\n%s", cmp.Diff(got, string(f.Object)))
	}
}

// TestWatchDeletedRevision checks that the revision of a DELETED event is that of
// the deletion, so that a client can resume from it.
func TestWatchDeletedRevision(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	watch := w.Watch("")
	w.Delete("a")
	watch.Want("ADDED a")
	f, _ := watch.Next()
	var o servertest.Object
	if err := json.Unmarshal(f.Object, &o); err != nil {
		t.Fatal(err)
	}
	if rev, _ := w.Store.Revision(t.Context()); servertest.MustRevision(t, o) != rev {
		t.Errorf("resourceVersion of the deletion is %s, the store is at %d", o.Metadata.ResourceVersion, rev)
	}
}

func TestWatchSelectors(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a", "labels: {team: red}")
	w.Create("b")
	red := w.Watch("&labelSelector=team%3Dred")
	named := w.Watch("&fieldSelector=metadata.name%3Db")
	w.Put("b", 50, "labels: {team: red}")
	w.Put("a", 50, "labels: {team: red}")
	w.Put("a", 40)
	w.Put("a", 30)
	w.Delete("a")
	w.Delete("b")
	red.Want("ADDED a", "ADDED b", "MODIFIED a", "DELETED a", "DELETED b")
	named.Want("ADDED b", "MODIFIED b", "DELETED b")
}

func TestWatchTable(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	watch := w.Watch("", servertest.AsTable)
	w.Create("b")
	for i, name := range []string{"a", "b"} {
		f, _ := watch.Next()
		var table metav1.Table
		if err := json.Unmarshal(f.Object, &table); err != nil || table.Kind != "Table" || table.Rows[0].Cells[0] != name {
			t.Fatalf("frame %d: %v %s", i, err, f.Object)
		}
		if sent := len(table.ColumnDefinitions) > 0; sent != (i == 0) {
			t.Errorf("frame %d: columns sent: %v, want them in the first only", i, sent)
		}
	}
	w.Want(http.StatusNotAcceptable, "GET", servertest.RulesPath+"?watch=true", "", "Accept: application/yaml")
}

func TestWatchBookmarks(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.BookmarkInterval = time.Millisecond })
	w.Create("a")
	watch := w.Watch("&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da")
	watch.Want("ADDED a")
	last := w.Create("b") // not selected, but the bookmarks get there
	for {
		f, ok := watch.Next()
		var o servertest.Object
		if !ok || f.Type != "BOOKMARK" || json.Unmarshal(f.Object, &o) != nil || o.Kind != "RouteRule" {
			t.Fatalf("got %s %s, want bookmarks", f, f.Object)
		}
		if servertest.MustRevision(t, o) >= servertest.MustRevision(t, last) {
			return
		}
	}
}

// TestWatchTimeout checks that a requested end comes with a last bookmark, at a
// revision that no event had.
func TestWatchTimeout(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	watch := w.Watch("&timeoutSeconds=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnone")
	watch.Want("BOOKMARK")
	watch.WantEnd()
}

func TestWatchCompacted(t *testing.T) {
	w := servertest.Start(t)
	created := w.Create("a")
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	watch := w.Watch("&allowWatchBookmarks=true&resourceVersion=" + created.Metadata.ResourceVersion)
	watch.Want("ERROR 410")
	watch.WantEnd()
	w.Want(http.StatusGone, "GET", servertest.RulesPath+"?resourceVersionMatch=Exact&resourceVersion="+created.Metadata.ResourceVersion, "")
}

// failing is a store whose watches end with an error after their first batch.
type failing struct {
	store.Reader
	err error
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
	return servertest.FailingWatcher{Watcher: w, Changes: one, Reason: f.err}, nil
}

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
	w := servertest.Start(t, func(o *server.Options) { o.Reads = hasty{o.Reads, o.Reads.(*memory.Store)} })
	first := w.Create("a")
	w.Create("b")
	watch := w.Watch("&resourceVersion=" + first.Metadata.ResourceVersion)
	watch.Want("ERROR 410")
	watch.WantEnd()
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
		w := servertest.Start(t, func(o *server.Options) { o.Reads = failing{o.Reads, c.err} })
		watch := w.Watch("&allowWatchBookmarks=true")
		w.Create("a")
		watch.Want(c.frames...)
		watch.WantEnd()
	}
}

func TestWatchLimit(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.MaxWatches = 1 })
	first := w.Watch("")
	got := w.Want(http.StatusTooManyRequests, "GET", servertest.RulesPath+"?watch=true", "")
	if got.Header.Get("Retry-After") == "" || got.Failure(t).Reason != metav1.StatusReasonTooManyRequests {
		t.Errorf("answer: %v %s", got.Header, got.Text)
	}
	first.Stop()
	untilSlotFree(w)
}

// TestWatchOfStoppedReader checks that a client that does not read is cut off by
// the write deadline, and keeps neither its place nor memory.
func TestWatchOfStoppedReader(t *testing.T) {
	outside.Slow(t)
	w := servertest.Start(t, func(o *server.Options) {
		o.MaxWatches = 1
		o.WatchWriteTimeout = 50 * time.Millisecond
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\n\r\n", servertest.RulesPath)
	if _, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil); err != nil {
		t.Fatal(err)
	}
	w.Want(http.StatusTooManyRequests, "GET", servertest.RulesPath+"?watch=true", "")
	big := "annotations: {note: " + strings.Repeat("x", 200<<10) + "}"
	w.Create("big", big)
	for i := range 40 { // more than the kernel buffers
		w.Put("big", i, big)
	}
	untilSlotFree(w)
}

// untilSlotFree tries until a watch is refused for its revision and no longer for
// lack of a place.
func untilSlotFree(w *servertest.World) {
	w.Helper()
	for w.Do("GET", servertest.RulesPath+"?watch=true&resourceVersion=999999", "").StatusCode != http.StatusGatewayTimeout {
		if w.Context().Err() != nil {
			w.Fatal("the slot is never given back")
		}
	}
}

// TestEventsOfUnknownPast checks that a store need not know the state before a
// change.
func TestEventsOfUnknownPast(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.Reads = forgetful{o.Reads} })
	w.Create("a", "labels: {team: red}")
	red := w.Watch("&labelSelector=team%3Dred")
	w.Put("a", 50, "labels: {team: red}")
	w.Put("a", 40)
	red.Want("ADDED a", "MODIFIED a", "DELETED a")
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
	return servertest.FailingWatcher{Watcher: w, Changes: out, Reason: ctx.Err()}, nil
}
