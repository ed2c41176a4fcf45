package ads_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// kinds returns the types of responses, in order.
func kinds(all []response) (out []string) {
	for _, r := range all {
		out = append(out, r.typeURL)
	}
	return out
}

// wantTold compares responses as text, by type and names.
func wantTold(t testing.TB, got []response, want ...string) {
	t.Helper()
	if text := texts(got); !slices.Equal(text, want) {
		t.Fatalf("told %q, want %q", text, want)
	}
}

func texts(all []response) (out []string) {
	for _, r := range all {
		out = append(out, r.String())
	}
	return out
}

// ready returns an Envoy that has everything of one host with two versions.
func ready(t testing.TB, kind variant) (*source, *server, *envoy) {
	t.Helper()
	src := newSource(service("web.example", 80, 1, "a", "b"))
	s := serve(t, src)
	return src, s, newEnvoy(s.connect(kind, nodeA)).start()
}

// TestEventualConsistencyConsiderations checks the order clusters, endpoints,
// listeners, routes, in one burst if nothing new has to warm.
func TestEventualConsistencyConsiderations(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		if !e.routesTo("out.web.example|http") {
			t.Fatal("the proxy has no routes")
		}
		// A change of clusters, endpoints and routes at once.
		src.publish(service("web.example", 80, 2, "a", "b"), pool("web.example", 7), timeout("web.example", 7))
		got := e.told()
		if want := []string{cds, eds, rds}; !slices.Equal(kinds(got), want) {
			t.Fatalf("told %v, want %v", got, want)
		}
	})
}

// TestEventualConsistencyListeners checks that a new listener comes after its
// clusters and before its routes.
func TestEventualConsistencyListeners(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		e.seen = nil
		src.publish(service("api.example", 9090, 3, "a"))
		e.play()
		if want := []string{cds, eds, lds, rds}; !slices.Equal(slices.Compact(kinds(e.seen)), want) {
			t.Fatalf("told %v, want %v", e.seen, want)
		}
	})
}

// TestMakeBeforeBreak checks that routes wait until new clusters are acknowledged,
// and that old clusters stay until the routes that left them are.
func TestMakeBeforeBreak(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		src.publish(toVersion("web.example", "a"))
		e.play()
		src.publish(toVersion("web.example", "b"))

		made := e.one()
		if made.typeURL != cds || made.resources[clusterOf("web.example", "b")] == nil {
			t.Fatalf("told %v, want the new cluster", made)
		}
		if kind == world && made.resources[clusterOf("web.example", "a")] == nil || len(made.removed) > 0 {
			t.Fatalf("told %v: the old cluster is withdrawn although routes lead there", made)
		}
		e.apply(made)
		e.follow(eds)
		endpoints := e.one()
		wantTold(t, []response{endpoints}, "ClusterLoadAssignment[web.example|http|version=b]")
		e.take(endpoints)
		e.nothing("before the new cluster is acknowledged")

		e.ack(made)
		routes := e.one()
		wantTold(t, []response{routes}, "RouteConfiguration[80]")
		e.apply(routes)
		e.nothing("before the routes are acknowledged")

		e.ack(routes)
		broken := e.one()
		e.take(broken)
		if broken.typeURL != cds || e.has[cds][clusterOf("web.example", "a")] != nil {
			t.Fatalf("told %v, want the old cluster to be withdrawn", broken)
		}
		e.play()
	})
}

// TestRoutesDoNotWaitForEver checks that a cluster that never warms delays routes
// no longer than an Envoy itself waits.
func TestRoutesDoNotWaitForEver(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		src.publish(toVersion("web.example", "a"))
		made := e.one()
		time.Sleep(15 * time.Second)
		e.nothing("while the proxy itself still waits")
		time.Sleep(15 * time.Second)
		wantTold(t, e.told(), "RouteConfiguration[80]")
		_ = made
	})
}

// TestNewClustersThatNeverWarmHoldUpNoRuleForEver checks that rules are in force in time
// although services whose names are not resolved come all the time, so that there always is
// a new cluster that warms, and later more of them than may be in flight. This holds for
// rules with clusters of their own too.
func TestNewClustersThatNeverWarmHoldUpNoRuleForEver(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		src.publish(service("api.example", 80, 2, "a", "b"))
		e.play()
		e.unresolved = true
		n := 0
		another := func() {
			for range 20 {
				n++
				src.put(unknownName(n))
				time.Sleep(400 * time.Millisecond)
				e.play()
			}
		}
		inForce := func(what string, is func() bool) {
			t.Helper()
			for begin := time.Now(); time.Since(begin) < 30*time.Second; {
				another()
				if is() {
					return
				}
			}
			t.Fatalf("%s is not in force after %d clusters that do not warm, told %v", what, n, e.seen)
		}
		most := 0
		for i := range 10 {
			another()
			most = max(most, len(e.held))
			src.publish(timeout("web.example", i+1))
			inForce("a time-out", func() bool { return contains(e.has[rds]["80"].String(), fmt.Sprintf("seconds:%d}", i+1)) })
			version := []string{"a", "b"}[i%2]
			src.publish(toVersion("api.example", version))
			inForce("a route to a version", func() bool { return e.routesTo(clusterOf("api.example", version)) })
		}
		if kind == delta && most < 16 {
			t.Errorf("only %d responses for clusters were not acknowledged at a time", most)
		}
	})
}

// TestRoutesWaitOnlyForTheirClusters checks that a route table does not wait for a cluster of
// another port that never warms.
func TestRoutesWaitOnlyForTheirClusters(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		e.unresolved = true
		src.publish(object("ServiceEntry", "unknown",
			`{"hosts":["unknown.example"],"location":"MESH_EXTERNAL","resolution":"DNS","ports":[{"number":443,"name":"tls","protocol":"TLS"},{"number":81,"name":"http","protocol":"HTTP"}]}`))
		src.publish(timeout("web.example", 7))
		e.play()
		if text := e.has[rds]["80"].String(); !contains(text, "seconds:7") {
			t.Errorf("the rule waits for a cluster that it does not lead to: %s", text)
		}
		listeners := len(e.has[lds])
		time.Sleep(time.Minute)
		e.play()
		if len(e.has[lds]) <= listeners {
			t.Error("the listeners never come, or did not wait for their cluster")
		}
	})
}

// TestOldClustersStayWhileRoutesAreRefused checks that they stay for any time.
func TestOldClustersStayWhileRoutesAreRefused(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		src.publish(toVersion("web.example", "a"))
		e.play()
		e.refuses = func(r response) (string, bool) { return "no", r.typeURL == rds }
		for i := range 3 {
			src.publish(toVersion("web.example", "b"), timeout("api.example", i+1), service("api.example", 80, i+3, "a"))
			e.play()
			time.Sleep(time.Hour)
		}
		e.play()
		if !e.routesTo(clusterOf("web.example", "a")) || e.has[cds][clusterOf("web.example", "a")] == nil {
			t.Fatal("the cluster is gone that the proxy still routes to")
		}
		// Its endpoints are still followed.
		src.publish(service("web.example", 80, 9, "a", "b"))
		e.play()
		if text := e.has[eds]["web.example|http|version=a"].String(); !contains(text, "10.0.9.1") {
			t.Fatalf("the endpoints of a cluster in use are old: %s", text)
		}
		e.refuses = func(response) (string, bool) { return "", false }
		src.publish(timeout("web.example", 5))
		e.play()
		if e.routesTo(clusterOf("web.example", "a")) || e.has[cds][clusterOf("web.example", "a")] != nil {
			t.Fatal("the old cluster stays after the routes are accepted")
		}
	})
}

// TestResourceWarming checks that after each change of a cluster its endpoints
// follow, although they are the same and no request asks for them.
func TestResourceWarming(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		before := e.has[eds]["web.example|http"]
		src.publish(pool("web.example", 9))
		got := e.told()
		if len(got) != 2 || got[0].typeURL != cds || got[1].String() != "ClusterLoadAssignment[web.example|http]" {
			t.Fatalf("told %v, want the cluster and its endpoints", got)
		}
		if got[1].resources["web.example|http"].String() != before.String() {
			t.Fatal("the endpoints are others")
		}
		for _, r := range got {
			e.take(r)
		}
		e.nothing("after all is acknowledged")
	})
}

// TestResourceWarmingAsksAgain checks that when an Envoy repeats its request for
// endpoints after a change of clusters, they are sent once.
func TestResourceWarmingAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, _, e := ready(t, world)
		src.publish(pool("web.example", 9))
		e.subscribe(eds)
		got := e.told()
		if want := []string{cds, eds}; !slices.Equal(kinds(got), want) {
			t.Fatalf("told %v, want %v", got, want)
		}
	})
}

// TestSeveralClustersUnderWay checks that the next change of clusters does not wait
// for the ACK of the one before, which an Envoy withholds while clusters warm. When
// it releases them, state of the world acknowledges only the newest.
func TestSeveralClustersUnderWay(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		var clusters []response
		for i := range 3 {
			src.publish(pool("web.example", i+1))
			for _, r := range e.told() {
				if r.typeURL == cds {
					clusters = append(clusters, r)
				} else {
					e.ack(r)
				}
			}
		}
		if len(clusters) != 3 {
			t.Fatalf("told %v, want three responses for clusters", clusters)
		}
		if kind == world {
			clusters = clusters[2:]
		}
		e.ack(clusters...)
		for _, r := range e.told() {
			if r.typeURL != eds {
				t.Fatalf("told %v after the ACK", r)
			}
		}
	})
}

// TestNothingForWhoIsNotConcerned checks that a change is not sent to a proxy that
// it does not concern.
func TestNothingForWhoIsNotConcerned(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		scoped := object("RouteRule", "scoped",
			`{"destination":{"service":"web.example"},"match":{"source":{"service":"web.example"}},"route":[{"labels":{"version":"a"}}]}`)
		src.publish(scoped)
		e.nothing("after a rule for others")
		src.publish(timeout("nowhere.example", 3))
		e.nothing("after a rule for nothing")
	})
}

// TestTwoStreamsOfOneNode checks that each receives everything.
func TestTwoStreamsOfOneNode(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := ready(t, kind)
		other := newEnvoy(s.connect(kind, nodeA)).start()
		other.sameAs(t, e)
		src.publish(toVersion("web.example", "a"))
		e.play()
		other.play()
		other.sameAs(t, e)
		other.end()
		src.publish(toVersion("web.example", "b"))
		e.play()
		e.sameAs(t, newEnvoy(s.connect(kind, nodeB)).start())
	})
}

// TestSlowReader checks that a client that resumes reading gets what was already
// sent and then the newest state, not a queue.
func TestSlowReader(t *testing.T) {
	outside.Slow(t)
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, _ := ready(t, kind)
		slow := make(chan struct{})
		e := newEnvoy(s.connectAs(kind, node(nodeB), slow))
		e.ask(cds)
		e.ask(lds)
		e.subscribe(rds, "80")
		for i := range 200 {
			src.publish(timeout("web.example", i+1), pool("web.example", i+1), service(fmt.Sprintf("x%d.example", i), 80, 3, "a"))
		}
		close(slow)
		got := e.told()
		if len(got) > 30 {
			t.Fatalf("told %d responses after 200 changes", len(got))
		}
		for _, r := range got {
			e.take(r)
		}
		e.play()
		e.sameAs(t, newEnvoy(s.connect(kind, nodeA)).start())
	})
}
