package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// waiting is a store whose creates of large objects wait for the end.
type waiting struct {
	store.Interface
	begun chan string
	end   chan struct{}
}

func (s waiting) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	if !strings.HasPrefix(obj.Meta.Name, "large") {
		return s.Interface.Create(ctx, obj)
	}
	s.begun <- obj.Meta.Name
	<-s.end
	return s.Interface.Create(context.WithoutCancel(ctx), obj)
}

func largeRule(name string) string {
	return rule(name, 100, "annotations:", "  payload: "+strings.Repeat("x", 100<<10), "  more: "+strings.Repeat("y", 100<<10))
}

// TestLargeWritesWaitInLine checks that large writes beyond the memory wait and are
// refused when that takes too long. No other request waits.
func TestLargeWritesWaitInLine(t *testing.T) {
	outside.Slow(t)
	begun, end := make(chan string, 100), make(chan struct{})
	w := start(t, func(o *server.Options) {
		o.Store = waiting{o.Store, begun, end}
		o.RequestTimeout = 2 * time.Second
	})
	const together, more = 5, 3 // 128 MiB are for 1 MiB of text
	answers := make(chan answer, together+more)
	send := func(i int) {
		answers <- w.do("POST", rulesPath, largeRule(fmt.Sprintf("large-%d", i)), asYAML)
	}
	for i := range together {
		go send(i)
	}
	for range together {
		<-begun
	}
	for i := range more {
		go send(together + i)
	}
	w.create("small")
	w.want(http.StatusOK, "PATCH", rulesPath+"/small", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type: application/merge-patch+json")
	w.want(http.StatusOK, "GET", rulesPath+"/small", "")
	w.want(http.StatusOK, "GET", rulesPath, "")

	for range more {
		got := <-answers
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
			t.Errorf("got %d, Retry-After %q, want 429: %s", got.StatusCode, got.Header.Get("Retry-After"), got.text)
		}
	}
	if len(begun) > 0 {
		t.Errorf("%s began although there was no room", <-begun)
	}
	close(end)
	for range together {
		if got := <-answers; got.StatusCode != http.StatusCreated {
			t.Errorf("got %d: %s", got.StatusCode, got.text)
		}
	}
	w.want(http.StatusCreated, "POST", rulesPath, rule("later", 100, "annotations:", "  payload: "+strings.Repeat("x", 200<<10)), asYAML)
}

// TestSlowBodiesHoldUpNobodySmall checks that clients which announce large bodies
// and send nothing only fill the line for large bodies.
func TestSlowBodiesHoldUpNobodySmall(t *testing.T) {
	w := start(t, func(o *server.Options) { o.RequestTimeout = time.Second })
	const many = 100 // more than there is room for
	statuses := make(chan string, many)
	for range many {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			rulesPath, schema.MaxTextBytes)
		go func() {
			status, err := textproto.NewReader(bufio.NewReader(conn)).ReadLine()
			if err != nil {
				t.Error(err)
			}
			statuses <- status
		}()
	}
	got := map[string]int{}
	for range many {
		got[<-statuses]++
	}
	if len(got) != 2 || got["HTTP/1.1 100 Continue"] == 0 || got["HTTP/1.1 429 Too Many Requests"] == 0 {
		t.Fatalf("large bodies were answered %v, want some 100 and some 429", got)
	}
	w.create("small")
}

// pieces counts the writes of an answer.
type pieces struct {
	*httptest.ResponseRecorder
	largest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	return p.ResponseRecorder.Write(b)
}

// TestListsAreNeverInMemory checks that a list in any format is written in pieces
// no larger than an item.
func TestListsAreNeverInMemory(t *testing.T) {
	var handler http.Handler
	w := start(t, func(o *server.Options) { handler = server.New(*o).Handler() })
	for i := range 20 {
		w.want(http.StatusCreated, "POST", rulesPath, largeRule(fmt.Sprintf("rule-%d", i)), asYAML)
	}
	for _, accept := range []string{"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		req := httptest.NewRequestWithContext(t.Context(), "GET", rulesPath, nil)
		req.Header.Set("Accept", accept)
		out := &pieces{ResponseRecorder: httptest.NewRecorder()}
		handler.ServeHTTP(out, req)
		if out.Code != http.StatusOK || out.Body.Len() < 4_000_000 {
			t.Fatalf("%s: got %d with %d bytes", accept, out.Code, out.Body.Len())
		}
		if out.largest > 256<<10 {
			t.Errorf("%s: a piece of %d bytes", accept, out.largest)
		}
	}
}
