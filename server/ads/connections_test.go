package ads_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestConnectionsAreBounded checks that connections without a proxy give way to new
// ones, and those of proxies do not.
func TestConnectionsAreBounded(t *testing.T) {
	const most, silent = 3, 20
	inBoth(t, func(t *testing.T, kind variant) {
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		src := newSource(service("web.example", 80, 1, "a"))
		s := serveAs(t, ads.Options{MaxConnections: most, Registry: registry, Log: slog.New(slog.NewTextHandler(&log, nil))}, src)
		a := newEnvoy(s.connect(kind, nodeA)).start()
		conns := s.silent(silent)
		b := newEnvoy(s.connect(kind, nodeB)).start()
		for _, e := range []*envoy{a, b} {
			if !e.routesTo("out.web.example|http") {
				t.Error("a proxy has no routes beside those who say nothing")
			}
		}
		for i, conn := range conns[:silent-1] {
			if !closed(conn) {
				t.Errorf("connection %d of %d is open", i, silent)
			}
		}
		// One has no proxy. 18 had to go for others without one, and one for b.
		metrics(t, registry, most, silent-1)
		if lines := strings.Count(log.String(), "as many stream connections as may be"); lines != 1 {
			t.Errorf("said %d times that there is no room:\n%s", lines, &log)
		}
	})
}

// TestAFullServerClosesNewConnections when all have a proxy, until one of them
// goes.
func TestAFullServerClosesNewConnections(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		registry := prometheus.NewRegistry()
		s := serveAs(t, ads.Options{MaxConnections: 1, Registry: registry}, newSource(service("web.example", 80, 1, "a")))
		a := newEnvoy(s.connect(kind, nodeA)).start()
		conns := s.silent(2)
		synctest.Wait()
		for i, conn := range conns {
			if !closed(conn) {
				t.Errorf("connection %d is open although a proxy has the only place", i)
			}
		}
		metrics(t, registry, 1, 2)
		a.end()
		synctest.Wait()
		metrics(t, registry, 0, 2)
		if b := newEnvoy(s.connect(kind, nodeB)).start(); !b.routesTo("out.web.example|http") {
			t.Error("the place of who left is not given to the next one")
		}
	})
}

// TestWhoEndsItsStreamGivesWay although its connection stays.
func TestWhoEndsItsStreamGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveAs(t, ads.Options{MaxConnections: 1}, newSource(service("web.example", 80, 1, "a")))
		a := newEnvoy(s.connect(delta, nodeA)).start()
		a.closeSend()
		if got := a.ended(); got != codes.OK {
			t.Fatal(got)
		}
		if b := newEnvoy(s.connect(delta, nodeB)).start(); !b.routesTo("out.web.example|http") {
			t.Error("a connection without a proxy keeps one out")
		}
	})
}

// silent opens connections that send nothing.
func (s *server) silent(n int) []net.Conn {
	s.t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = s.listener.DialContext(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { conns[i].Close() })
	}
	synctest.Wait()
	return conns
}

// closed reads what is there, to the end or until nothing moves.
func closed(conn net.Conn) bool {
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(end)
	}()
	synctest.Wait()
	select {
	case <-end:
		return true
	default:
		return false
	}
}

func metrics(t *testing.T, registry *prometheus.Registry, open, closed float64) {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range all {
		got[m.GetName()] = m.GetMetric()[0].GetGauge().GetValue() + m.GetMetric()[0].GetCounter().GetValue()
	}
	if got["pilot_stream_connections"] != open || got["pilot_stream_connections_closed_total"] != closed {
		t.Errorf("metrics %v, want %v open and %v closed", got, open, closed)
	}
}
