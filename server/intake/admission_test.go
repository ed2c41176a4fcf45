package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// TestLargeWritesWaitInLine checks that large writes beyond the memory wait and are
// refused when that takes too long. No other request waits.
func TestLargeWritesWaitInLine(t *testing.T) {
	outside.Slow(t)
	begun, end := make(chan string, 100), make(chan struct{})
	w := servertest.Start(t, func(o *server.Options) {
		o.Store = waiting{o.Store, begun, end}
		o.RequestTimeout = 2 * time.Second
	})
	const together, more = 5, 3 // 128 MiB are for 1 MiB of text
	answers := make(chan servertest.Answer, together+more)
	send := func(i int) {
		answers <- w.Do("POST", servertest.RulesPath, servertest.LargeRule(fmt.Sprintf("large-%d", i)), servertest.AsYAML)
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
	w.Create("small")
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/small", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type: application/merge-patch+json")
	w.Want(http.StatusOK, "GET", servertest.RulesPath+"/small", "")
	w.Want(http.StatusOK, "GET", servertest.RulesPath, "")

	for range more {
		got := <-answers
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
			t.Errorf("got %d, Retry-After %q, want 429: %s", got.StatusCode, got.Header.Get("Retry-After"), got.Text)
		}
	}
	if len(begun) > 0 {
		t.Errorf("%s began although there was no room", <-begun)
	}
	close(end)
	for range together {
		if got := <-answers; got.StatusCode != http.StatusCreated {
			t.Errorf("got %d: %s", got.StatusCode, got.Text)
		}
	}
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.Rule("later", 100, "annotations:", "  payload: "+strings.Repeat("x", 200<<10)), servertest.AsYAML)
}

// TestSlowBodiesHoldUpNobody checks that clients which announce large bodies and send
// nothing, or all but the end, hold up no honest write, be it small, large or slow.
func TestSlowBodiesHoldUpNobody(t *testing.T) {
	outside.Slow(t)
	for what, send := range map[string]struct{ clients, announced, sent int }{
		"nothing of large bodies":    {100, 8 << 20, 0},
		"nothing of small bodies":    {2400, 16 << 10, 0},
		"most of large bodies":       {6, 8 << 20, 7 << 20},
		"most of one-object bodies":  {60, schema.MaxTextBytes, 900 << 10},
		"most of bodies in one step": {60, schema.MaxTextBytes, 640 << 10},
	} {
		t.Run(what, func(t *testing.T) {
			w, addr, _ := servertest.Serve(t, servertest.Plenty)
			slow := make(chan servertest.Answer, 1)
			go func() { slow <- sendSlowly(w, "slow") }()
			for range send.clients {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", servertest.Transactions, send.announced)
				go func() { _, _ = conn.Write([]byte(strings.Repeat(" ", send.sent))) }()
			}
			time.Sleep(300 * time.Millisecond)
			begin := time.Now()
			for i := range 10 {
				w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.LargeRule(fmt.Sprintf("large-%d", i)), servertest.AsYAML)
				w.Create(fmt.Sprintf("small-%d", i))
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("honest writes took %v", took)
			}
			if got := <-slow; got.StatusCode != http.StatusCreated {
				t.Errorf("the slow one got %d: %s", got.StatusCode, got.Text)
			}
		})
	}
}

// sendSlowly creates a large object with a body that arrives at 64 KiB a second.
func sendSlowly(w *servertest.World, name string) servertest.Answer {
	text := servertest.LargeRule(name)
	from, to := io.Pipe()
	go func() {
		defer to.Close()
		for at := 0; at < len(text); at += 16 << 10 {
			_, _ = to.Write([]byte(text[at:min(at+16<<10, len(text))]))
			time.Sleep(time.Second / 4)
		}
	}()
	r, err := http.NewRequestWithContext(w.Context(), "POST", w.URL+servertest.RulesPath, from)
	if err != nil {
		return servertest.Answer{Text: err.Error(), Response: &http.Response{}}
	}
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Type", "application/yaml")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return servertest.Answer{Text: err.Error(), Response: &http.Response{}}
	}
	defer got.Body.Close()
	all, _ := io.ReadAll(got.Body)
	return servertest.Answer{Response: got, Text: string(all)}
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
	w := servertest.Start(t, func(o *server.Options) { handler = server.New(*o).Handler() })
	for i := range 20 {
		w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.LargeRule(fmt.Sprintf("rule-%d", i)), servertest.AsYAML)
	}
	for _, accept := range []string{"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		req := httptest.NewRequestWithContext(t.Context(), "GET", servertest.RulesPath, nil)
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
