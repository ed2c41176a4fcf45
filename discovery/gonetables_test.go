package discovery_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// edgePoller is an Envoy at the edge that polls, and all of whose connections stay open.
type edgePoller struct {
	*testing.T
	s      *discovery.Publisher
	has    map[string]discovery.Answer // by type or, of route tables, by name
	tables []string                    // in the order in which its listeners named them
	deny   bool                        // listeners
}

var tableInListener = regexp.MustCompile(`"route_?[cC]onfig_?[nN]ame": ?"([^"]+)"`)

// ask polls once, and reports whether there was something new.
func (p *edgePoller) ask(typeURL string, names ...string) (changed bool) {
	p.Helper()
	key := strings.Join(append(names, typeURL)[:1], "")
	before := p.has[key]
	a, err := p.s.V3(typeURL, mesh.Node{ID: "router~10.9.0.3~r.default~default.svc.cluster.local"}, before.Version, names)
	if err != nil {
		p.Fatal(err)
	}
	if a.Version == before.Version || typeURL == discovery.ListenerType && p.deny {
		return false
	}
	p.has[key] = a
	if typeURL == discovery.ListenerType {
		for _, m := range tableInListener.FindAllStringSubmatch(string(a.Body), -1) {
			if p.has[m[1]].Version == "" {
				p.tables = append(p.tables, m[1])
			}
		}
	}
	return true
}

// round polls for everything.
func (p *edgePoller) round() {
	p.Helper()
	p.ask(discovery.ClusterType)
	p.ask(discovery.ListenerType)
	for _, table := range p.tables {
		p.ask(discovery.RouteType, table)
	}
	time.Sleep(5 * time.Second)
}

// isClosed reports whether a table answers 421 to every request.
func (p *edgePoller) isClosed(table string) bool {
	body := string(p.has[table].Body)
	return strings.Contains(body, "421") && !strings.Contains(body, "204")
}

func (p *edgePoller) wantState(when string, o *schema.Object, revision int64, routes discovery.SyncState, running int) {
	p.Helper()
	if got := p.s.Proxies()[0].Types["routes"].State; got != routes {
		p.Errorf("%s: routes are %s, want %s", when, got, routes)
	}
	if got := p.s.ObjectStatuses(nil).Of(o.Key().Ref(), revision); got.Proxies != 1 || got.Running != running {
		p.Errorf("%s: %+v, want %d proxies running it", when, got, running)
	}
}

// TestTableOfAChangedServerIsClosedOverPolls checks that open connections of a TLS server which
// now asks something else are answered 421, when the polls show that new connections meet the
// new server and not before, and that nothing counts as running until then.
func TestTableOfAChangedServerIsClosedOverPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secure := func(version string) *schema.Object {
			return object(t, "Gateway", "tls", fmt.Sprintf(`{"servers":[{"port":{"number":8443,"name":"https","protocol":"HTTPS"},"hosts":["*"],
				"tls":{"mode":"SIMPLE","serverCertificate":"/cert","privateKey":"/key","minProtocolVersion":%q}}]}`, version))
		}
		rule := object(t, "VirtualService", "tls", `{"hosts":["*"],"gateways":["tls"],"http":[{"directResponse":{"status":204}}]}`)
		src := newObjects(secure("TLSV1_2"), rule)
		p := &edgePoller{T: t, s: follow(t, src, discovery.Options{}), has: map[string]discovery.Answer{}}
		for range 4 {
			p.round()
		}
		first := p.tables[0]
		p.wantState("at first", rule, src.revision, discovery.Synced, 1)

		changed := secure("TLSV1_3")
		src.set(changed, rule)
		time.Sleep(time.Second)
		stays := func(when string) {
			t.Helper()
			if p.ask(discovery.RouteType, first) || p.isClosed(first) {
				t.Fatalf("%s: the table changed", when)
			}
			p.wantState(when, changed, src.revision, discovery.Stale, 0)
		}
		stays("before other polls")
		p.ask(discovery.ClusterType)
		p.ask(discovery.ListenerType)
		stays("after an answer with listeners")
		p.ask(discovery.ListenerType)
		stays("before the table of the new listener")
		second := p.tables[1]
		p.ask(discovery.RouteType, second)
		stays("before the proxy has shown that table")
		p.ask(discovery.RouteType, second)
		p.ask(discovery.RouteType, first)
		if !p.isClosed(first) || p.isClosed(second) {
			t.Fatal("the first table is open, or the second is closed")
		}
		p.wantState("before the proxy has shown the closed table", changed, src.revision, discovery.Sent, 0)
		for range 3 {
			p.round()
		}
		p.wantState("in the end", changed, src.revision, discovery.Synced, 1)

		p.tables = p.tables[1:] // The old connections have ended.
		for range 6 {
			p.round()
		}
		p.wantState("after the connections have ended", changed, src.revision, discovery.Synced, 1)

		p.deny = true
		again := secure("TLSV1_2")
		src.set(again, rule)
		for range 8 {
			p.round()
		}
		if p.isClosed(second) {
			t.Error("the table of a listener that the proxy keeps is closed")
		}
		p.wantState("with the new listeners refused", again, src.revision, discovery.Stale, 0)
	})
}
