package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// source reads server-sent events as a browser does.
type source struct {
	t        *testing.T
	lines    *bufio.Scanner
	lastID   string // of the last dispatched event
	comments int
	stop     context.CancelFunc
}

const asEvents = "Accept: text/event-stream"

func (w *world) source(query string, headers ...string) *source {
	w.Helper()
	watch := w.watch(query, append(headers, asEvents)...)
	return &source{t: w.T, lines: watch.lines, stop: watch.stop}
}

// next returns the next event with data.
func (s *source) next() (f frame, ok bool) {
	s.t.Helper()
	data := ""
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case s.lines.Text() == "" && data != "":
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				s.t.Fatalf("%v in %s", err, data)
			}
			return f, true
		case field == "id":
			s.lastID = value
		case field == "data":
			data += value
		case s.lines.Text() == ":":
			s.comments++
		case s.lines.Text() != "":
			s.t.Fatalf("unknown field in %q", s.lines.Text())
		}
	}
	return frame{}, false
}

func (s *source) want(frames ...string) {
	s.t.Helper()
	var got []string
	for range frames {
		f, ok := s.next()
		if !ok {
			break
		}
		got = append(got, f.String())
	}
	if diff := cmp.Diff(frames, got); diff != "" {
		s.t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// untilID reads until the source is at a revision.
func (s *source) untilID(revision int64) {
	s.t.Helper()
	for s.lastID != strconv.FormatInt(revision, 10) {
		if !s.lines.Scan() {
			s.t.Fatalf("the stream ended at id %s, want %d", s.lastID, revision)
		}
		if id, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			s.lastID = id
		}
	}
}

// transaction creates rules at one revision.
func (w *world) transaction(names ...string) (revision int64) {
	w.Helper()
	var keys []schema.Key
	for _, name := range names {
		keys = append(keys, schema.Key{Kind: "RouteRule", Namespace: "default", Name: name})
	}
	return w.createAll(keys...)
}

// createAll creates rules and policies at one revision.
func (w *world) createAll(keys ...schema.Key) (revision int64) {
	w.Helper()
	var ops []store.Op
	for _, key := range keys {
		kind, _ := schema.KindByName(key.Kind)
		obj, err := schema.New(kind, metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, json.RawMessage(`{"destination":{"name":"reviews"}}`))
		if err != nil {
			w.Fatal(err)
		}
		ops = append(ops, store.Op{Verb: store.OpCreate, Object: obj})
	}
	done, err := w.store.Txn(w.Context(), ops)
	if err != nil {
		w.Fatal(err)
	}
	return done[0].Revision()
}

// TestServerSentEvents checks that the data is that of any other watch.
func TestServerSentEvents(t *testing.T) {
	w := start(t)
	w.create("a")
	b := mustRevision(t, w.create("b"))
	watch, source := w.watch(""), w.source("")
	for range 2 {
		f, _ := watch.next()
		e, _ := source.next()
		if diff := cmp.Diff(f, e); diff != "" {
			t.Errorf("(-line +event):\n%s", diff)
		}
	}
	source.untilID(b)
	source.want() // The state is complete.
	w.put("a", 50)
	w.delete("b")
	source.want("MODIFIED a", "DELETED b")
	head := w.want(http.StatusOK, "GET", rulesPath+"?watch=true&timeoutSeconds=1", "", asEvents).Header
	if head.Get("Content-Type") != "text/event-stream" || head.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", head)
	}
	w.source(stateFirst).want("ADDED a", "BOOKMARK")
	w.want(http.StatusNotAcceptable, "GET", rulesPath, "", asEvents)
}

// TestEventIDs checks that wherever a stream of transactions is cut off, a client
// that resumes from its last id receives each later transaction once and as a
// whole.
func TestEventIDs(t *testing.T) {
	w := start(t)
	begin := mustRevision(t, w.create("begin"))
	at := map[int64][]string{}
	for _, names := range [][]string{{"a1", "a2", "a3"}, {"b1"}, {"c1", "c2"}} {
		at[w.transaction(names...)] = names
	}
	const all = 6
	from := "Last-Event-ID: " + strconv.FormatInt(begin, 10)
	for cut := range all + 1 {
		first := w.source("", from)
		for range cut {
			first.next()
		}
		first.stop()
		if first.lastID == "" {
			first.lastID = strconv.FormatInt(begin, 10)
		}
		reached, _ := strconv.ParseInt(first.lastID, 10, 64)
		var want []string
		for _, revision := range slices.Sorted(maps.Keys(at)) {
			for _, name := range at[revision] {
				if revision > reached {
					want = append(want, "ADDED "+name)
				}
			}
		}
		if told := all - len(want); told > cut {
			t.Errorf("after %d events the id says that %d were told", cut, told)
		}
		w.source("", "Last-Event-ID: "+first.lastID).want(want...)
	}
}

// TestLastEventID checks that it overrides the query, and must be an id.
func TestLastEventID(t *testing.T) {
	w := start(t)
	a := w.create("a").Metadata.ResourceVersion
	w.create("b")
	for _, query := range []string{"", "&resourceVersion=0", stateFirst, "&resourceVersion=1"} {
		source := w.source(query, "Last-Event-ID: "+a)
		for f, _ := source.next(); f.String() != "ADDED b"; f, _ = source.next() {
			if f.Type != "BOOKMARK" || strings.Contains(string(f.Object), "annotations") {
				t.Fatalf("%q: got %s %s", query, f, f.Object)
			}
		}
	}
	for _, bad := range []string{"0", "-1", "x", "1 2", "99999999999999999999"} {
		st := w.want(http.StatusBadRequest, "GET", rulesPath+"?watch=true", "", asEvents, "Last-Event-ID: "+bad).status(t)
		if !strings.Contains(st.Message, "Last-Event-ID") {
			t.Errorf("%s: %s", bad, st.Message)
		}
	}
	w.want(http.StatusGatewayTimeout, "GET", rulesPath+"?watch=true", "", asEvents, "Last-Event-ID: 999")
	// Other watches ignore the header.
	w.watch("", "Last-Event-ID: x").want("ADDED a", "ADDED b")
}

// TestSourceOutlivesServer checks that a client resumes with another server over
// the same store.
func TestSourceOutlivesServer(t *testing.T) {
	w, _, stop := serve(t, nil)
	w.create("a")
	source := w.source("&labelSelector=!hidden")
	source.want("ADDED a")
	w.create("b", "labels: {hidden: on-purpose}")
	w.create("c")
	source.want("ADDED c")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if f, ok := source.next(); ok {
		t.Errorf("at the end: %s", f)
	}
	second := httptest.NewServer(server.New(server.Options{Store: w.store, Reads: w.store}).Handler())
	t.Cleanup(second.Close)
	w.url = second.URL
	w.create("d")
	w.source("&labelSelector=!hidden", "Last-Event-ID: "+source.lastID).want("ADDED d")
}

// TestSourceExpires checks that at the beginning and in the middle the client is
// told so, and loses its last id.
func TestSourceExpires(t *testing.T) {
	w := start(t)
	old := w.create("a").Metadata.ResourceVersion
	w.store.Compact(mustRevision(t, w.put("a", 50)))
	source := w.source("", "Last-Event-ID: "+old)
	source.want("ERROR 410")
	if f, ok := source.next(); ok || source.lastID != "" {
		t.Errorf("then %s, with the last id %q", f, source.lastID)
	}
	w = start(t, func(o *server.Options) { o.Reads = failing{o.Reads, &store.Error{Kind: store.ErrExpired}} })
	source = w.source("")
	w.create("a")
	source.want("ADDED a", "ERROR 410")
	if source.lastID != "" {
		t.Errorf("the last id is %q", source.lastID)
	}
}

// TestHeartbeats checks that an idle source is not silent, and that its id advances
// past events that it does not select.
func TestHeartbeats(t *testing.T) {
	w := start(t, func(o *server.Options) { o.HeartbeatInterval = time.Millisecond })
	source := w.source("&fieldSelector=metadata.name%3Dnone")
	source.untilID(1)
	for source.lines.Scan() && source.lines.Text() != ":" {
	}
	if source.lines.Text() != ":" {
		t.Fatal("no heartbeat")
	}
	w = start(t, func(o *server.Options) { o.BookmarkInterval = time.Millisecond })
	source = w.source("&fieldSelector=metadata.name%3Dnone")
	source.untilID(mustRevision(t, w.create("a")))
}
