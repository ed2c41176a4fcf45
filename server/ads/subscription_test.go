package ads_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

const (
	clusterWeb = "out.web.example|http"
	clusterAPI = "out.api.example|http"
)

// two returns a source with two hosts, and a client that has sent nothing.
func two(t testing.TB, kind variant) (*source, *client) {
	t.Helper()
	src := newSource(service("web.example", 80, 1, "a", "b"), service("api.example", 80, 2, "a"))
	return src, serve(t, src).connect(kind, nodeA)
}

// TestWildcard checks that no names mean all clusters and listeners as long as none
// was named, and that the asterisk means the same.
func TestWildcard(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, c := two(t, kind)
		c.subscribe(cds)
		legacy := c.one()
		c.ack(legacy)
		c.subscribe(lds, "*")
		c.ack(c.one())
		if !slices.Contains(legacy.names(), clusterWeb) || !slices.Contains(legacy.names(), clusterAPI) {
			t.Fatalf("told %v, want all", legacy)
		}
		src.publish(service("new.example", 80, 3, "a"))
		if r := ofType(c.told(), cds); r.resources["out.new.example|http"] == nil {
			t.Fatalf("told %v, want what is new", r)
		}
	})
}

// TestWildcardThenNames runs the example of the reference in the state of the
// world.
func TestWildcardThenNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, c := two(t, world)
		c.subscribe(cds)
		all := c.one()
		c.ack(all)
		names := func(names ...string) {
			c.names[cds] = map[string]bool{}
			c.subscribe(cds, names...)
		}
		names("*", clusterWeb)
		more := c.one()
		if !slices.Equal(more.names(), all.names()) {
			t.Fatalf("told %v, want all and the one that is named now", more)
		}
		c.ack(more)
		names(clusterWeb)
		for _, r := range c.told() {
			c.ack(r)
		}
		src.publish(pool("web.example", 3), pool("api.example", 3))
		only := c.one()
		wantTold(t, []response{only}, "Cluster["+clusterWeb+"]")
		c.ack(only)
		names()
		for _, r := range c.told() {
			c.ack(r)
		}
		src.publish(pool("web.example", 4), pool("api.example", 4))
		c.nothing("after the last name was unsubscribed: no names mean nothing by then")
	})
}

// TestWildcardThenNamesDelta runs the example of the reference in delta.
func TestWildcardThenNamesDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, c := two(t, delta)
		c.subscribe(cds)
		c.ack(c.one())
		c.subscribe(cds, clusterWeb)
		named := c.one()
		wantTold(t, []response{named}, "Cluster["+clusterWeb+"]")
		c.ack(named)
		c.unsubscribe(cds, "*")
		c.nothing("after the wildcard was unsubscribed")
		src.publish(pool("web.example", 3), pool("api.example", 3))
		only := c.one()
		wantTold(t, []response{only}, "Cluster["+clusterWeb+"]")
		c.ack(only)
		c.unsubscribe(cds, clusterWeb)
		c.nothing("for a name that was unsubscribed")
		src.publish(pool("web.example", 4), pool("api.example", 4))
		c.nothing("after the last name was unsubscribed")
		c.subscribe(cds, "*")
		if again := c.one(); again.resources[clusterWeb] == nil || again.resources[clusterAPI] == nil {
			t.Fatalf("told %v, want all: who unsubscribed has forgotten them", again)
		}
	})
}

// TestWildcardFirstAnswer checks that it is sent even if empty, because it ends
// initialization.
func TestWildcardFirstAnswer(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		c := serve(t, newSource()).connect(kind, "router~10.9.0.3~r.default~default.svc.cluster.local")
		for _, typeURL := range []string{cds, lds} {
			c.subscribe(typeURL)
			if r := c.one(); r.typeURL != typeURL {
				t.Fatalf("told %v", r)
			}
		}
	})
}

// TestNames of clusters and listeners checks that only these are sent, also when
// they change or are removed.
func TestNames(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, c := two(t, kind)
		c.subscribe(cds, clusterWeb)
		first := c.one()
		wantTold(t, []response{first}, "Cluster["+clusterWeb+"]")
		c.ack(first)
		src.publish(pool("api.example", 4))
		c.nothing("after a change of another one")
		c.subscribe(cds, clusterAPI)
		both := c.one()
		if both.resources[clusterAPI] == nil || (kind == world) != (both.resources[clusterWeb] != nil) {
			t.Fatalf("told %v", both)
		}
		c.ack(both)
		src.withdraw(service("api.example", 80, 2, "a"))
		gone := c.one()
		if kind == world {
			wantTold(t, []response{gone}, "Cluster["+clusterWeb+"]")
		} else {
			wantTold(t, []response{gone}, "Cluster[] without ["+clusterAPI+"]")
		}
	})
}

// TestSubscribingToResources checks that a newly named resource is sent even if it
// is unchanged and was sent before.
func TestSubscribingToResources(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, c := two(t, kind)
		c.subscribe(eds, "web.example|http")
		first := c.one()
		c.ack(first)
		c.subscribe(eds, "api.example|http")
		second := c.one()
		wantTold(t, []response{second}, "ClusterLoadAssignment[api.example|http]")
		c.ack(second)
		c.unsubscribe(eds, "api.example|http")
		c.nothing("for a name that was unsubscribed")
		src.publish(service("api.example", 80, 3, "a"))
		c.nothing("of what is not subscribed to")
		c.subscribe(eds, "api.example|http")
		third := c.one()
		wantTold(t, []response{third}, "ClusterLoadAssignment[api.example|http]")
		if third.resources["api.example|http"].String() == second.resources["api.example|http"].String() {
			t.Fatal("the endpoints are old")
		}
	})
}

// TestSubscribingAgain checks that it is answered, although the client should have
// the resource.
func TestSubscribingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := two(t, delta)
		c.subscribe(cds)
		c.ack(c.one())
		for _, q := range []struct{ typeURL, name, want string }{
			{eds, "web.example|http", "ClusterLoadAssignment[web.example|http]"},
			{rds, "80", "RouteConfiguration[80]"},
			{cds, clusterWeb, "Cluster[" + clusterWeb + "]"},
			{cds, "none", "Cluster[] without [none]"},
		} {
			for range 2 {
				c.subscribe(q.typeURL, q.name)
				r := c.one()
				wantTold(t, []response{r}, q.want)
				c.ack(r)
			}
		}
	})
}

// TestUnsubscribingUnderAWildcard is answered with the resource, or its removal.
func TestUnsubscribingUnderAWildcard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := two(t, delta)
		c.subscribe(cds, "*", clusterWeb, "none")
		c.ack(c.one())
		c.unsubscribe(cds, clusterWeb, "none")
		wantTold(t, c.told(), "Cluster["+clusterWeb+"] without [none]")
	})
}

// TestUnsubscribingFromResources checks that unsubscribing without a subscription
// is ignored.
func TestUnsubscribingFromResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := two(t, delta)
		c.subscribe(eds, "web.example|http")
		c.ack(c.one())
		c.unsubscribe(eds, "phantom")
		c.nothing("after a phantom was unsubscribed")
	})
}

// TestKnowingWhenARequestedResourceDoesNotExist checks that unknown endpoints and
// routes are sent empty, so that no Envoy waits for them.
func TestKnowingWhenARequestedResourceDoesNotExist(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, c := two(t, kind)
		c.subscribe(eds, "later.example|http")
		r := c.one()
		c.ack(r)
		if l := decoded[*endpointv3.ClusterLoadAssignment](t, r.resources["later.example|http"]); len(l.GetEndpoints()) > 0 {
			t.Fatalf("told %v", l)
		}
		c.subscribe(rds, "4711")
		r = c.one()
		c.ack(r)
		if l := decoded[*routev3.RouteConfiguration](t, r.resources["4711"]); len(l.GetVirtualHosts()) > 0 {
			t.Fatalf("told %v", l)
		}
		src.publish(service("later.example", 4711, 4, "a"))
		got := c.told()
		if len(got) != 2 {
			t.Fatalf("told %v, want the endpoints and the routes that exist now", got)
		}
		if l := decoded[*endpointv3.ClusterLoadAssignment](t, got[0].resources["later.example|http"]); len(l.GetEndpoints()) == 0 {
			t.Fatalf("told %v", l)
		}
	})
}

// TestKnowingThatATableIsGone checks that a route table is never removed by name.
func TestKnowingThatATableIsGone(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(service("web.example", 80, 1, "a"), service("api.example", 9090, 2, "a"))
		c := serve(t, src).connect(kind, nodeA)
		c.subscribe(rds, "80", "9090")
		c.ack(c.one())
		src.withdraw(service("api.example", 9090, 2, "a"))
		for _, r := range c.told() {
			if len(r.removed) > 0 {
				t.Fatalf("told %v", r)
			}
			c.ack(r)
		}
		// Later responses are complete again.
		src.publish(service("api.example", 9090, 2, "a"))
		if got := c.told(); len(got) == 1 && got[0].resources["9090"] == nil {
			t.Fatalf("told %v", got)
		}
	})
}

// TestDeletingResources checks removal by name or by absence.
func TestDeletingResources(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(service("web.example", 80, 1, "a"), service("api.example", 9090, 2, "a"))
		s := serve(t, src)
		e := newEnvoy(s.connect(kind, nodeA)).start()
		if e.has[cds][clusterAPI] == nil || e.has[lds]["http_0.0.0.0_9090"] == nil {
			t.Fatalf("the proxy has %v and %v", slices.Collect(maps.Keys(e.has[cds])), slices.Collect(maps.Keys(e.has[lds])))
		}
		src.withdraw(service("api.example", 9090, 2, "a"))
		e.play()
		if e.has[cds][clusterAPI] != nil || e.has[lds]["http_0.0.0.0_9090"] != nil {
			t.Fatalf("the proxy has %v and %v", slices.Collect(maps.Keys(e.has[cds])), slices.Collect(maps.Keys(e.has[lds])))
		}
		e.sameAs(t, newEnvoy(s.connect(kind, nodeB)).start())
	})
}

// TestWhenToSendAnUpdate checks that updates are sent only after a change.
func TestWhenToSendAnUpdate(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		e.nothing("without a change")
		src.publish(service("web.example", 80, 1, "a", "b"))
		e.nothing("after the same was stored again")
		e.subscribe("type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration", "x")
		e.nothing("of a type that is not served")
	})
}

// TestKnowingThatASecretDoesNotExist checks that a delta client which names secrets learns
// at once which of them do not exist, and receives one as soon as it exists. A client that
// comes back with a secret which has gone keeps it.
func TestKnowingThatASecretDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lates(t)["secrets"]
		src := newSource(l.objects[0], l.objects[1], l.objects[2]) // not the second secret
		s := serve(t, src)
		s.privately = true
		c := s.connect(delta, l.node)
		c.subscribe(sds, l.first, l.second)
		r := c.one()
		if _, has := r.resources[l.first]; !has || !slices.Equal(r.removed, []string{l.second}) {
			t.Fatalf("told %v, want %s, and that there is no %s", r, l.first, l.second)
		}
		c.ack(r)
		if more := c.told(); len(more) > 0 {
			t.Fatalf("told %v, although nothing has changed", more)
		}
		src.publish(l.objects[3])
		if r = c.one(); r.resources[l.second] == nil {
			t.Fatalf("told %v, want %s", r, l.second)
		}
		c.ack(r)
		src.withdraw(l.objects[3])
		c.told()

		back := s.connect(delta, l.node)
		back.say(request{typeURL: sds, names: []string{l.second}, initial: map[string]string{l.second: "before"}})
		for _, r := range back.told() {
			if len(r.removed) > 0 {
				t.Errorf("a client that came back is told %v", r)
			}
		}
	})
}
