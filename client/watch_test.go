package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

// script answers each watch with the next text and then ends it. It records the
// queries. After the last text it answers 503.
type script struct {
	texts   []string
	queries chan string
}

func newScript(texts ...string) *script {
	return &script{texts: texts, queries: make(chan string, len(texts)+1)}
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.queries <- r.URL.Query().Get("resourceVersion")
	if len(s.texts) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	_, _ = io.WriteString(w, text)
}

func rule(name string, revision int) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule",`+
		`"metadata":{"resourceVersion":"%d","name":%q,"namespace":"books"},"spec":{}}`, revision, name)
}

func eventText(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

func bookmark(revision int) string {
	return eventText("BOOKMARK", fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, revision))
}

// drain reads a watch to its end.
func drain(w store.Watcher) []string {
	var got []string
	for b := range w.Batches() {
		line := fmt.Sprintf("@%d", b.Revision)
		for _, e := range b.Events {
			line += fmt.Sprintf(" %s %s@%d", e.Type, e.Object.Meta.Name, e.Object.Revision())
		}
		got = append(got, line)
	}
	return got
}

func TestWatchStreams(t *testing.T) {
	status := `{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"gone"}`
	cases := []struct {
		name, text string
		want       []string
		err        error // nil: any
		message    string
	}{
		{
			"a transaction is one batch",
			eventText("ADDED", rule("a", 3)) + eventText("MODIFIED", rule("b", 3)) + bookmark(3) + eventText("DELETED", rule("a", 4)) + bookmark(4),
			[]string{"@3 ADDED a@3 MODIFIED b@3", "@4 DELETED a@4"},
			store.ErrUnavailable, "ended the watch",
		},
		{
			"what no bookmark confirms is not handed over",
			bookmark(2) + eventText("ADDED", rule("a", 3)),
			[]string{"@2"},
			store.ErrUnavailable, "ended the watch",
		},
		{"expired in the stream", eventText("ERROR", status), nil, store.ErrExpired, "gone"},
		{"broken off within a frame", eventText("ADDED", rule("a", 3))[:40], nil, store.ErrUnavailable, "broke off"},
		{"no JSON", "nonsense", nil, nil, "decode a frame"},
		{"unknown type", eventText("MOVED", rule("a", 3)), nil, nil, `"MOVED"`},
		{"another kind", eventText("ADDED", `{"kind":"Pod"}`), nil, nil, `"Pod"`},
		{"bad bookmark", eventText("BOOKMARK", `{"metadata":{"resourceVersion":"x"}}`), nil, nil, `"x"`},
		{"giant frame", `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 6<<20) + `"}}`, nil, nil, "larger than"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewServer(newScript(tc.text))
			t.Cleanup(srv.Close)
			w, err := connect(t, srv.URL, client.Options{}).Watch(t.Context(), store.Scope{Kind: routeRules(t)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, drain(w)); diff != "" {
				t.Errorf("batches (-want +got):\n%s", diff)
			}
			if tc.err != nil && !errors.Is(w.Err(), tc.err) {
				t.Errorf("error %v is not %v", w.Err(), tc.err)
			}
			if w.Err() == nil || !strings.Contains(w.Err().Error(), tc.message) {
				t.Errorf("error %v, want one with %q", w.Err(), tc.message)
			}
		})
	}
}

func TestWatchFailsAtTheCall(t *testing.T) {
	rec := &recorder{code: http.StatusGone, answer: `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`}
	_, err := rec.start(t, client.Options{}).Watch(t.Context(), store.Scope{Kind: routeRules(t)}, 1)
	if !errors.Is(err, store.ErrExpired) {
		t.Errorf("error %v, want ErrExpired", err)
	}
}
