package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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

func openSource(w *servertest.World, query string, headers ...string) *source {
	w.Helper()
	watch := w.Watch(query, append(headers, asEvents)...)
	return &source{t: w.T, lines: watch.Lines, stop: watch.Stop}
}

// next returns the next event with data.
func (s *source) next() (f servertest.Frame, ok bool) {
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
	return servertest.Frame{}, false
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

// TestServerSentEvents checks that the data is that of any other watch.
func TestServerSentEvents(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	b := servertest.MustRevision(t, w.Create("b"))
	watch, source := w.Watch(""), openSource(w, "")
	for range 2 {
		f, _ := watch.Next()
		e, _ := source.next()
		if diff := cmp.Diff(f, e); diff != "" {
			t.Errorf("(-line +event):\n%s", diff)
		}
	}
	source.untilID(b)
	source.want() // The state is complete.
	w.Put("a", 50)
	w.Delete("b")
	source.want("MODIFIED a", "DELETED b")
	head := w.Want(http.StatusOK, "GET", servertest.RulesPath+"?watch=true&timeoutSeconds=1", "", asEvents).Header
	if head.Get("Content-Type") != "text/event-stream" || head.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", head)
	}
	openSource(w, servertest.StateFirst).want("ADDED a", "BOOKMARK")
	w.Want(http.StatusNotAcceptable, "GET", servertest.RulesPath, "", asEvents)
}

// TestEventIDs checks that wherever a stream of transactions is cut off, a client
// that resumes from its last id receives each later transaction once and as a
// whole.
func TestEventIDs(t *testing.T) {
	w := servertest.Start(t)
	begin := servertest.MustRevision(t, w.Create("begin"))
	at := map[int64][]string{}
	for _, names := range [][]string{{"a1", "a2", "a3"}, {"b1"}, {"c1", "c2"}} {
		at[w.Transaction(names...)] = names
	}
	const all = 6
	from := "Last-Event-ID: " + strconv.FormatInt(begin, 10)
	for cut := range all + 1 {
		first := openSource(w, "", from)
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
		openSource(w, "", "Last-Event-ID: "+first.lastID).want(want...)
	}
}

// TestLastEventID checks that it overrides the query, and must be an id.
func TestLastEventID(t *testing.T) {
	w := servertest.Start(t)
	a := w.Create("a").Metadata.ResourceVersion
	w.Create("b")
	for _, query := range []string{"", "&resourceVersion=0", servertest.StateFirst, "&resourceVersion=1"} {
		source := openSource(w, query, "Last-Event-ID: "+a)
		for f, _ := source.next(); f.String() != "ADDED b"; f, _ = source.next() {
			if f.Type != "BOOKMARK" || strings.Contains(string(f.Object), "annotations") {
				t.Fatalf("%q: got %s %s", query, f, f.Object)
			}
		}
	}
	for _, bad := range []string{"0", "-1", "x", "1 2", "99999999999999999999"} {
		st := w.Want(http.StatusBadRequest, "GET", servertest.RulesPath+"?watch=true", "", asEvents, "Last-Event-ID: "+bad).Failure(t)
		if !strings.Contains(st.Message, "Last-Event-ID") {
			t.Errorf("%s: %s", bad, st.Message)
		}
	}
	w.Want(http.StatusGatewayTimeout, "GET", servertest.RulesPath+"?watch=true", "", asEvents, "Last-Event-ID: 999")
	// Other watches ignore the header.
	w.Watch("", "Last-Event-ID: x").Want("ADDED a", "ADDED b")
}

// TestSourceOutlivesServer checks that a client resumes with another server over
// the same store.
func TestSourceOutlivesServer(t *testing.T) {
	w, _, stop := servertest.Serve(t, nil)
	w.Create("a")
	source := openSource(w, "&labelSelector=!hidden")
	source.want("ADDED a")
	w.Create("b", "labels: {hidden: on-purpose}")
	w.Create("c")
	source.want("ADDED c")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if f, ok := source.next(); ok {
		t.Errorf("at the end: %s", f)
	}
	second := httptest.NewServer(server.New(server.Options{Store: w.Store, Reads: w.Store}).Handler())
	t.Cleanup(second.Close)
	w.URL = second.URL
	w.Create("d")
	openSource(w, "&labelSelector=!hidden", "Last-Event-ID: "+source.lastID).want("ADDED d")
}

// TestSourceExpires checks that at the beginning and in the middle the client is
// told so, and loses its last id.
func TestSourceExpires(t *testing.T) {
	w := servertest.Start(t)
	old := w.Create("a").Metadata.ResourceVersion
	w.Store.Compact(servertest.MustRevision(t, w.Put("a", 50)))
	source := openSource(w, "", "Last-Event-ID: "+old)
	source.want("ERROR 410")
	if f, ok := source.next(); ok || source.lastID != "" {
		t.Errorf("then %s, with the last id %q", f, source.lastID)
	}
	w = servertest.Start(t, func(o *server.Options) { o.Reads = failing{o.Reads, &store.Error{Kind: store.ErrExpired}} })
	source = openSource(w, "")
	w.Create("a")
	source.want("ADDED a", "ERROR 410")
	if source.lastID != "" {
		t.Errorf("the last id is %q", source.lastID)
	}
}

// TestHeartbeats checks that an idle source is not silent, and that its id advances
// past events that it does not select.
func TestHeartbeats(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.HeartbeatInterval = time.Millisecond })
	source := openSource(w, "&fieldSelector=metadata.name%3Dnone")
	source.untilID(1)
	for source.lines.Scan() && source.lines.Text() != ":" {
	}
	if source.lines.Text() != ":" {
		t.Fatal("no heartbeat")
	}
	w = servertest.Start(t, func(o *server.Options) { o.BookmarkInterval = time.Millisecond })
	source = openSource(w, "&fieldSelector=metadata.name%3Dnone")
	source.untilID(servertest.MustRevision(t, w.Create("a")))
}
