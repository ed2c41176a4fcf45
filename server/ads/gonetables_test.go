package ads_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// secure is a server of TLS at a port, for all hosts.
func secure(name string, port int, version string) *schema.Object {
	return object("Gateway", name, fmt.Sprintf(`{"servers":[{"port":{"number":%d,"name":"https","protocol":"HTTPS"},"hosts":["*"],
		"tls":{"mode":"SIMPLE","serverCertificate":"/cert","privateKey":"/key","minProtocolVersion":%q}}]}`, port, version))
}

// secured returns a router with a server of TLS, all of whose connections stay open.
func secured(t testing.TB, kind variant) (*source, *server, *envoy) {
	src := newSource(service("web.example", 80, 1, "a"), edge("open", 8080), through("open", 1), secure("tls", 8443, "TLSV1_2"), through("tls", 1))
	s := serve(t, src)
	e := newEnvoy(s.connect(kind, nodeEdge))
	e.draining = true
	return src, s, e.start()
}

// tableAt returns the name of the only route table at a port that the proxy has and that is not
// among some others.
func (e *envoy) tableAt(port int, others ...string) string {
	e.t.Helper()
	var found []string
	for name := range e.has[rds] {
		if at, _, _ := strings.Cut(name, "|"); at == fmt.Sprint(port) && !slices.Contains(others, name) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		e.t.Fatalf("the route tables at port %d are %v", port, slices.Sorted(maps.Keys(e.has[rds])))
	}
	return found[0]
}

// isClosed reports whether a route table serves nothing.
func (e *envoy) isClosed(table string) bool {
	e.t.Helper()
	statuses, routes := map[uint32]bool{}, 0
	visit(e.has[rds][table], func(m proto.Message) {
		if r, ok := m.(*routev3.Route); ok {
			routes++
			statuses[r.GetDirectResponse().GetStatus()] = true
		}
	})
	return routes == 0 || len(statuses) == 1 && statuses[http.StatusMisdirectedRequest]
}

// takesUntilClosed takes responses one by one, and checks after each that a table is closed
// only when the proxy has the listeners and route tables that take its place, and that some
// objects do not run before.
func (e *envoy) takesUntilClosed(s *server, table string, has func() bool, objects ...*schema.Object) {
	e.t.Helper()
	for range 100 {
		synctest.Wait()
		closed := e.isClosed(table)
		if closed && !has() {
			e.t.Fatalf("the table is closed before the present listeners are open, after %v", e.seen)
		}
		for _, o := range objects {
			if got := statusOf(s, o); !closed && got.Running != 0 {
				e.t.Fatalf("%s runs although the table %s is open: %+v", o.Key(), table, got)
			}
		}
		if closed {
			e.play()
			return
		}
		e.takeOne()
	}
	e.t.Fatalf("the table %s is open after %v", table, e.seen)
}

// TestTableOfAChangedServerIsClosed checks that open connections of a TLS server which now asks
// something else are answered 421, when new connections meet the new server and not before, and
// that nothing counts as running until then. If the server asks for the same as before again,
// its connections have the present routes.
func TestTableOfAChangedServerIsClosed(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := secured(t, kind)
		first := e.tableAt(8443)
		changed := secure("tls", 8443, "TLSV1_3")
		src.publish(changed)
		e.takesUntilClosed(s, first, func() bool { return len(e.has[rds]) == 3 }, changed)
		second := e.tableAt(8443, first)
		wantRunning(t, s, map[*schema.Object]bool{changed: true, through("tls", 1): true, through("open", 1): true})
		if e.isClosed(second) || e.isClosed("8080") {
			t.Error("a table that connections need is closed")
		}

		src.publish(through("tls", 2))
		if r := e.one(); !slices.Contains(r.names(), second) || slices.Contains(r.names(), first) {
			t.Errorf("told %v, want the table of the present server", r)
		} else {
			e.take(r)
			e.play()
		}
		wantRunning(t, s, map[*schema.Object]bool{through("tls", 2): true})

		src.publish(secure("tls", 8443, "TLSV1_2"))
		e.play()
		if e.isClosed(first) || !e.isClosed(second) {
			t.Errorf("the first table is closed: %v, want open; the second: %v", e.isClosed(first), e.isClosed(second))
		}
		wantRunning(t, s, map[*schema.Object]bool{secure("tls", 8443, "TLSV1_2"): true, through("tls", 2): true})

		src.withdraw(secure("tls", 8443, "TLSV1_2"), edge("open", 8080))
		e.play()
		for _, table := range []string{first, second, "8080"} {
			if !e.isClosed(table) {
				t.Errorf("table %s of a deleted server is open", table)
			}
		}
		if got := s.publisher.Proxies()[0]; got.Revision != src.revision {
			t.Errorf("the proxy is %+v, want it at revision %d", got, src.revision)
		}
		if len(e.has[cds]) != 1 {
			t.Errorf("the proxy has clusters %v, want only that for undeclared hosts", slices.Sorted(maps.Keys(e.has[cds])))
		}
	})
}

// TestTableOfARefusedListenerStays checks that the listener which a proxy keeps in place of one
// that it refuses has its routes, also over another stream, and that a table which only a
// deleted listener used is closed all the same.
func TestTableOfARefusedListenerStays(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := secured(t, kind)
		first := e.tableAt(8443)
		e.refusing(lds, "Error adding/updating listener(s) http_0.0.0.0_8443: no such version\n", func(text string) bool { return contains(text, "TLSv1_3") })
		changed := secure("tls", 8443, "TLSV1_3")
		check := func(when string) {
			t.Helper()
			e.play()
			if e.isClosed(first) {
				t.Errorf("%s: the table of a listener that takes connections is closed", when)
			}
			if got := statusOf(s, changed); got.Running != 0 {
				t.Errorf("%s: %s is %+v, want refused", when, changed.Key(), got)
			}
		}
		src.publish(changed)
		check("refused")
		wantRunning(t, s, map[*schema.Object]bool{through("open", 1): true, changed: false})
		e.again(s.connect(kind, nodeEdge))
		check("over another stream")
		src.withdraw(edge("open", 8080))
		check("after another listener was deleted")
		if !e.isClosed("8080") {
			t.Error("the table of the deleted listener is open")
		}
		e.refuses = func(response) (string, bool) { return "", false }
		src.publish(secure("tls", 8443, "TLSV1_1"))
		e.play()
		if !e.isClosed(first) {
			t.Error("the table is open after its listener was replaced")
		}
	})
}

// TestTableOfAChangedServerIsClosedOverAnotherStream checks that a proxy whose stream broke
// before the change keeps the routes of its listener until it has the new one.
func TestTableOfAChangedServerIsClosedOverAnotherStream(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := secured(t, kind)
		first := e.tableAt(8443)
		e.end()
		changed := secure("tls", 8443, "TLSV1_3")
		src.publish(changed)
		e.again(s.connect(kind, nodeEdge))
		e.takesUntilClosed(s, first, func() bool { return len(e.has[rds]) == 3 }, changed)
		wantRunning(t, s, map[*schema.Object]bool{changed: true, through("tls", 1): true})

		e.again(s.connect(kind, nodeEdge))
		e.play()
		if !e.isClosed(first) {
			t.Error("the table is open again over another stream")
		}
		wantRunning(t, s, map[*schema.Object]bool{changed: true, through("tls", 1): true})
	})
}

// TestTableOfAChangedServerIsClosedInTheEnd checks that the table is closed some time after the
// proxy has acked the listeners, even if these never take connections. Until then nothing
// counts as running.
func TestTableOfAChangedServerIsClosedInTheEnd(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := secured(t, kind)
		first := e.tableAt(8443)
		changed := secure("tls", 8443, "TLSV1_3")
		src.publish(changed)
		c := e.client // It never asks for the table of the new listener.
		for all := c.told(); len(all) > 0; all = c.told() {
			c.ack(all...)
		}
		if got := statusOf(s, changed); got.Running != 0 {
			t.Errorf("the change runs although the earlier connections are served: %+v", got)
		}
		time.Sleep(25 * time.Second)
		r := c.one()
		if e.has[rds][first] = r.resources[first]; !slices.Equal(r.names(), []string{first}) || !e.isClosed(first) {
			t.Fatalf("told %v, want a closed table", r)
		}
		c.ack(r)
		c.nothing("after the table was closed")
	})
}

// TestTablesThatNobodyHas checks that a proxy which asks for thousands of route tables that do
// not exist is answered, and takes little memory.
func TestTablesThatNobodyHas(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		s := serve(t, newSource(edge("open", 8080), through("open", 1)))
		c := s.connect(kind, nodeEdge)
		c.subscribe(lds)
		c.ack(c.told()...)
		names := []string{"8080"}
		for i := range 3000 {
			names = append(names, fmt.Sprintf("8443|tls=%d", i))
		}
		c.subscribe(rds, names...)
		got := map[string]bool{}
		for all := c.told(); len(all) > 0; all = c.told() {
			for _, r := range all {
				for _, n := range r.names() {
					got[n] = true
				}
			}
			c.ack(all...)
		}
		if len(got) != len(names) {
			t.Errorf("%d of %d tables were answered", len(got), len(names))
		}
		synctest.Wait()
		if p := s.publisher.Proxies()[0]; p.Types["routes"].State != discovery.Stale {
			t.Errorf("routes are %+v, want them stale, because not all tables are followed", p.Types["routes"])
		}
		c.unsubscribe(rds, names[2:]...)
		c.ack(c.told()...)
		synctest.Wait()
		if p := s.publisher.Proxies()[0]; p.Types["routes"].State != discovery.Synced {
			t.Errorf("routes are %+v, want them synced", p.Types["routes"])
		}
	})
}
