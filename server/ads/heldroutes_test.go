package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// twoVersions returns an Envoy with two services of two versions each, whose rules lead to
// version a of web.example if ruled is true. It refuses the cluster of version b, by its
// name, as long as that has badPool connections.
func twoVersions(t testing.TB, kind variant, ruled bool) (*source, *server, *envoy) {
	src := newSource(service("web.example", 80, 1, "a", "b"), service("api.example", 80, 2, "a", "b"), timeout("api.example", 1), poolOfB(badPool))
	if ruled {
		src.put(toVersion("web.example", "a"))
	}
	s := serve(t, src)
	e := newEnvoy(s.connect(kind, nodeA)).start()
	e.refusing(cds, "Error adding/updating cluster(s) "+clusterOf("web.example", "b")+": it is bad.", isBad)
	return src, s, e
}

// poolOfB changes the cluster of version b of web.example.
func poolOfB(connections int) *schema.Object {
	return object("DestinationPolicy", "pool-b", fmt.Sprintf(
		`{"destination":{"service":"web.example","labels":{"version":"b"}},"circuitBreaker":{"simpleCb":{"maxConnections":%d}}}`, connections))
}

func (e *envoy) wantLeadsTo(cluster string, others ...string) {
	e.t.Helper()
	if !e.routesTo(cluster) || e.has[cds][cluster] == nil {
		e.t.Errorf("no route leads to %s, or it is missing: %v", cluster, e.seen)
	}
	for _, other := range others {
		if e.routesTo(other) {
			e.t.Errorf("a route leads to %s: %v", other, e.seen)
		}
	}
}

// TestRouteToARefusedClusterStaysAsItWas checks that a rule whose new cluster the proxy
// refuses changes nothing for its requests until the proxy takes the cluster: what they
// had before stays, also if that was another rule, or none. All other rules move on.
func TestRouteToARefusedClusterStaysAsItWas(t *testing.T) {
	for name, ruled := range map[string]bool{"a changed rule": true, "a new rule": false} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src, s, e := twoVersions(t, kind, ruled)
				before, after := "out.web.example|http", clusterOf("web.example", "b")
				if ruled {
					before = clusterOf("web.example", "a")
				}
				toB := toVersion("web.example", "b")
				src.publish(toB, timeout("api.example", 2))
				e.play()
				e.wantLeadsTo(before, after)
				e.wantTimeouts(map[string]string{"api.example": "2s"})
				wantBlame(t, s, "pool-b", toB.Meta.Name, "web.example")
				wantRunning(t, s, map[*schema.Object]bool{toB: false, timeout("api.example", 2): true})

				src.publish(timeout("api.example", 3))
				e.play()
				e.wantLeadsTo(before, after)
				e.wantTimeouts(map[string]string{"api.example": "3s"})
				wantRunning(t, s, map[*schema.Object]bool{toB: false, timeout("api.example", 3): true})

				src.publish(poolOfB(2))
				e.play()
				e.wantLeadsTo(after, clusterOf("web.example", "a"))
				wantBlame(t, s)
				wantRunning(t, s, map[*schema.Object]bool{toB: true, timeout("api.example", 3): true})
				if e.has[cds][clusterOf("web.example", "a")] != nil {
					t.Error("the cluster that nothing leads to is still there")
				}
			})
		})
	}
}

// TestRouteToARefusedClusterIsTakenBack checks that a rule which no longer leads to the
// refused cluster takes effect at once.
func TestRouteToARefusedClusterIsTakenBack(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := twoVersions(t, kind, true)
		src.publish(toVersion("web.example", "b"))
		e.play()
		src.withdraw(toVersion("web.example", "b"))
		e.play()
		e.wantLeadsTo("out.web.example|http", clusterOf("web.example", "a"), clusterOf("web.example", "b"))
		wantBlame(t, s)
	})
}

// TestRouteToARefusedClusterBesideABadRoute checks that routes which wait for a cluster,
// and others which the proxy refuses, are told apart in one table.
func TestRouteToARefusedClusterBesideABadRoute(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := twoVersions(t, kind, true)
		refusesCluster := e.refuses
		e.refusesPoison(noName)
		refusesRoute := e.refuses
		e.refuses = func(r response) (string, bool) {
			if words, refuse := refusesCluster(r); refuse {
				return words, true
			}
			return refusesRoute(r)
		}
		src.publish(toVersion("web.example", "b"), timeout("api.example", 666), service("c.example", 80, 3, "a"), timeout("c.example", 2))
		e.play()
		e.wantLeadsTo(clusterOf("web.example", "a"), clusterOf("web.example", "b"))
		e.wantTimeouts(map[string]string{"api.example": "1s", "c.example": "2s"})
		wantBlame(t, s, "pool-b", "timeout-api.example", "version-web.example", "web.example")
	})
}

// TestRouteToARefusedClusterStaysOverAnotherStream checks that a route whose new cluster the
// proxy refuses stays as it was when the stream breaks and the proxy comes back with what it
// has, also if the server has not noticed the break, and if rules have changed meanwhile. All
// other rules move on, and the status says what does not run.
func TestRouteToARefusedClusterStaysOverAnotherStream(t *testing.T) {
	for name, c := range map[string]struct{ unnoticed, changed bool }{
		"broken": {}, "not noticed": {unnoticed: true}, "with a change": {changed: true}, "not noticed, with a change": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src, s, e := twoVersions(t, kind, true)
				before, after := clusterOf("web.example", "a"), clusterOf("web.example", "b")
				toB := toVersion("web.example", "b")
				src.publish(toB)
				e.play()
				e.wantLeadsTo(before, after)

				api := timeout("api.example", 1)
				comes := func() {
					t.Helper()
					if c.unnoticed {
						t.Cleanup(e.end)
						e.end = func() {}
					} else {
						e.end()
						synctest.Wait()
					}
					if c.changed {
						api = timeout("api.example", 2)
						src.publish(api, service("c.example", 80, 3, "a"), timeout("c.example", 4))
					}
					e.again(s.connect(kind, nodeA))
					e.play()
					e.wantLeadsTo(before, after)
					if c.changed {
						e.wantTimeouts(map[string]string{"api.example": "2s", "c.example": "4s"})
					}
					if !c.unnoticed {
						wantBlame(t, s, "pool-b", toB.Meta.Name, "web.example")
						wantRunning(t, s, map[*schema.Object]bool{toB: false, api: true})
					}
				}
				comes()
				comes()
				if c.unnoticed {
					return
				}
				src.publish(poolOfB(2))
				e.play()
				e.wantLeadsTo(after, before)
				wantBlame(t, s)
				wantRunning(t, s, map[*schema.Object]bool{toB: true, api: true})
			})
		})
	}
}

// TestNothingRemainsForAnotherProcess checks that a proxy which comes back without what it had
// is sent everything.
func TestNothingRemainsForAnotherProcess(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := twoVersions(t, kind, true)
		src.publish(toVersion("web.example", "b"))
		e.play()
		e.end()
		synctest.Wait()
		fresh := newEnvoy(s.connect(kind, nodeA)).start()
		fresh.wantLeadsTo(clusterOf("web.example", "b"), clusterOf("web.example", "a"))
		wantBlame(t, s)
		wantRunning(t, s, map[*schema.Object]bool{toVersion("web.example", "b"): true})
	})
}

// TestNothingRemainsForLong checks that what remains of a stream is forgotten after a while.
// The route then leads to the cluster that the proxy refuses again.
func TestNothingRemainsForLong(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := twoVersions(t, kind, true)
		toB := toVersion("web.example", "b")
		src.publish(toB)
		e.play()
		e.end()
		time.Sleep(31 * time.Second)
		e.again(s.connect(kind, nodeA))
		e.play()
		if !e.routesTo(clusterOf("web.example", "b")) {
			t.Error("the server remembers a stream that ended long ago")
		}
		if got := statusOf(s, toB); got.Running != 0 {
			t.Errorf("%+v, want not running", got)
		}
	})
}
