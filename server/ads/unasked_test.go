package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
)

// takes accepts everything that a client is told, until there is no more.
func (c *client) takes() {
	c.t.Helper()
	for all := c.told(); len(all) > 0; all = c.told() {
		c.ack(all...)
	}
}

// wantLacking checks that the only proxy runs nothing, and that its status says what it has not
// subscribed to; "" if it runs everything.
func wantLacking(t testing.TB, s *server, src *source, when, typeName, what string) {
	t.Helper()
	synctest.Wait()
	one := s.publisher.Proxies()[0]
	rule := statusOf(s, timeout("web.example", 1))
	switch of := one.Types[typeName]; {
	case what == "":
		if one.Revision != src.revision || rule.Proxies != 1 || rule.Running != 1 {
			t.Errorf("%s: the proxy runs revision %d, and the rule is %+v; want %d, and run: %+v", when, one.Revision, rule, src.revision, one.Types)
		}
	case one.Revision != 0 || rule.Proxies != 1 || rule.Running != 0:
		t.Errorf("%s: the proxy runs revision %d, and the rule is %+v; want nothing run", when, one.Revision, rule)
	case of.State != discovery.Stale || of.Error != "the proxy has not subscribed to "+what:
		t.Errorf("%s: %s are %+v, want %q", when, typeName, of, what)
	}
}

// TestAProxyRunsNothingUntilItAsksForAll checks, for each set of the types that a proxy
// may subscribe to, that it runs what it has acknowledged only if it has subscribed to all that
// it should have.
func TestAProxyRunsNothingUntilItAsksForAll(t *testing.T) {
	asks := []struct {
		typeURL  string
		names    []string
		typeName string
		what     string // what its status names without it
	}{
		{cds, nil, "clusters", "clusters"},
		{eds, []string{"api.example|http", "web.example|http"}, "endpoints", "endpoints"},
		{lds, nil, "listeners", "listeners"},
		{rds, []string{"80", "81"}, "routes", "routes"},
	}
	inBoth(t, func(t *testing.T, kind variant) {
		for subset := 1; subset < 1<<len(asks); subset++ {
			src := newSource(service("web.example", 80, 1, "a"), service("api.example", 81, 2, "a"), timeout("web.example", 1))
			s := serve(t, src)
			c := s.connect(kind, nodeA)
			what, of := "", ""
			for i, ask := range asks {
				if subset&(1<<i) == 0 {
					if what == "" {
						what, of = ask.what, ask.typeName
					}
					continue
				}
				c.subscribe(ask.typeURL, ask.names...)
				c.takes()
			}
			wantLacking(t, s, src, fmt.Sprintf("subset %04b", subset), of, what)
			c.end()
			s.stop()
		}
	})
}

// TestAProxyThatUnsubscribesRunsNothing checks that a proxy which no longer subscribes to a
// route table of its listeners, or to the endpoints of a cluster, does not run what it has
// acknowledged, before and after a change, until it subscribes again.
func TestAProxyThatUnsubscribesRunsNothing(t *testing.T) {
	for _, of := range []struct{ typeURL, name, typeName, what string }{
		{rds, "81", "routes", "route table 81"},
		{eds, "api.example|http", "endpoints", "endpoints api.example|http"},
	} {
		inBoth(t, func(t *testing.T, kind variant) {
			src := newSource(service("web.example", 80, 1, "a"), service("api.example", 81, 2, "a"), timeout("web.example", 1))
			s := serve(t, src)
			c := s.connect(kind, nodeA)
			c.subscribe(cds)
			c.takes()
			c.subscribe(eds, "web.example|http", "api.example|http")
			c.subscribe(lds)
			c.subscribe(rds, "80", "81")
			c.takes()
			wantLacking(t, s, src, "at first", of.typeName, "")
			c.unsubscribe(of.typeURL, of.name)
			c.takes()
			wantLacking(t, s, src, "without it", of.typeName, of.what)
			src.publish(timeout("web.example", 2))
			c.takes()
			wantLacking(t, s, src, "after a change", of.typeName, of.what)
			c.subscribe(of.typeURL, of.name)
			c.takes()
			wantLacking(t, s, src, "with it", of.typeName, "")
		})
	}
}

// TestAProxyWithoutListenersRuns checks that a proxy runs its configuration if there are no
// listeners in it.
func TestAProxyWithoutListenersRuns(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(service("web.example", 80, 1, "a"))
		s := serve(t, src)
		c := s.connect(kind, nodeEdge)
		c.subscribe(cds)
		c.takes()
		c.subscribe(eds, "web.example|http")
		c.takes()
		synctest.Wait()
		if one := s.publisher.Proxies()[0]; one.Revision != src.revision {
			t.Errorf("the proxy runs revision %d, want %d: %+v", one.Revision, src.revision, one.Types)
		}
	})
}
