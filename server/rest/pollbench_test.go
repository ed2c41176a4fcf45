package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// BenchmarkPoll measures polls of an Envoy that is up to date: its whole 77 KB over
// loopback, 64 connections, 304 as answer, through the whole server. In alternation
// it measures the limit: the same polls to a handler that discards the body and
// answers 304. Both see the same machine, so only the ratio counts.
func BenchmarkPoll(b *testing.B) {
	d := rest.Published(b, rest.WebService(b))
	objects := memory.New()
	s := server.New(server.Options{Store: store.Strict(objects), Reads: objects, Discovery: d})
	a, err := d.V3(discovery.ClusterType, discovery.Node{ID: rest.PollingNode}, "", nil)
	if err != nil {
		b.Fatal(err)
	}
	ours, limit := newPolls(b, s.Handler(), a.Version), newPolls(b, http.HandlerFunc(drain), "v")
	const turn = 2_048
	var took, least time.Duration
	for b.Loop() {
		took += ours.send(turn)
		least += limit.send(turn)
	}
	polls := float64(b.N) * turn
	b.ReportMetric(0, "ns/op") // both together
	b.ReportMetric(polls/took.Seconds(), "polls/s")
	b.ReportMetric(polls/least.Seconds(), "drained/s")
	b.ReportMetric(least.Seconds()/took.Seconds(), "polls/drained")
}

// TestPolls runs the benchmark's polls once.
func TestPolls(t *testing.T) {
	newPolls(t, http.HandlerFunc(drain), "v").send(pollers)
}

func drain(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusNotModified)
}

// pollers is the number of concurrent pollers.
const pollers = 64

// polls are bare connections: a whole HTTP client would take most of the machine
// and hide the cost of the handler.
type polls struct {
	testing.TB
	request []byte
	conns   [pollers]net.Conn
	answers [pollers]*textproto.Reader
}

func newPolls(tb testing.TB, h http.Handler, version string) *polls {
	tb.Helper()
	srv := httptest.NewServer(h)
	tb.Cleanup(srv.Close)
	body := rest.EnvoyPoll(version, rest.EnvoyNode(rest.PollingNode, 1000), "", discovery.ClusterType)
	p := &polls{TB: tb, request: fmt.Appendf(nil, "POST /v3/discovery:clusters HTTP/1.1\r\nhost: pilot-api\r\n"+
		"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)}
	for i := range pollers {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = conn.Close() })
		p.conns[i], p.answers[i] = conn, textproto.NewReader(bufio.NewReader(conn))
	}
	return p
}

// send sends n polls and returns the time that they took.
func (p *polls) send(n int) time.Duration {
	p.Helper()
	start := time.Now()
	var all sync.WaitGroup
	for i := range pollers {
		all.Go(func() {
			for range n / pollers {
				if err := pollOnce(p.conns[i], p.answers[i], p.request); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

func pollOnce(conn io.Writer, answers *textproto.Reader, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	status, err := answers.ReadLine()
	if err == nil && !strings.HasPrefix(status, "HTTP/1.1 304") {
		err = fmt.Errorf("answered %q, want 304", status)
	}
	for line := status; err == nil && line != ""; {
		line, err = answers.ReadLine()
	}
	return err
}
