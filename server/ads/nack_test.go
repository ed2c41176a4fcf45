package ads_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestNACKOncePerChange checks that a client that refuses forever gets one response
// for each change of content, whichever type it refuses. For a route table that it
// never accepted, the server first tries one that is closed.
func TestNACKOncePerChange(t *testing.T) {
	for typeURL, change := range map[string]func(i int) func(*source){
		cds: func(i int) func(*source) { return func(s *source) { s.publish(pool("web.example", i+1)) } },
		eds: func(i int) func(*source) {
			return func(s *source) { s.publish(service("web.example", 80, i+1, "a", "b")) }
		},
		lds: func(i int) func(*source) {
			return func(s *source) { s.publish(service("x.example", 7000+i, 7, "a")) }
		},
		rds: func(i int) func(*source) { return func(s *source) { s.publish(timeout("web.example", i+1)) } },
	} {
		t.Run(typeURL[strings.LastIndexByte(typeURL, '.')+1:], func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src := newSource(service("web.example", 80, 200, "a", "b"))
				e := newEnvoy(serve(t, src).connect(kind, nodeA))
				e.refuses = func(r response) (string, bool) { return "no", r.typeURL == typeURL }
				for _, each := range []string{cds, lds} {
					e.subscribe(each)
				}
				e.subscribe(eds, "web.example|http")
				e.subscribe(rds, "80")
				e.asked = map[string]bool{cds: true, eds: true, lds: true, rds: true}
				for changes := range 5 {
					e.seen = nil
					if changes > 0 {
						change(changes)(src)
					}
					for i := 0; i < 3; i++ { // Responses to NACKs would never end.
						for _, r := range e.told() {
							if e.seen = append(e.seen, r); r.typeURL == typeURL {
								e.nack(r, "no")
							} else {
								e.ack(r)
							}
						}
					}
					refused := 0
					for _, r := range e.seen {
						if r.typeURL == typeURL {
							refused++
						}
					}
					want := 1
					if typeURL == rds {
						want = 2
					}
					if refused != want {
						t.Fatalf("told %d times of what it refuses, want %d: %v", refused, want, e.seen)
					}
				}
			})
		})
	}
}

// refusing makes an Envoy refuse bad texts of one type.
func (e *envoy) refusing(typeURL, words string, bad func(text string) bool) {
	e.refuses = func(r response) (string, bool) {
		if r.typeURL == typeURL {
			for _, a := range r.resources {
				if m, err := a.UnmarshalNew(); err == nil && bad(protoText(m)) {
					return words, true
				}
			}
		}
		return "", false
	}
}

func protoText(m proto.Message) string { return strings.ReplaceAll(prototextOf(m), "  ", " ") }

// connections returns the connections of a cluster.
func (e *envoy) connections(name string) uint32 {
	e.t.Helper()
	a := e.has[cds][name]
	if a == nil {
		return 0
	}
	return decoded[*clusterv3.Cluster](e.t, a).GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue()
}

// badPool is a number of connections that the Envoys of the tests refuse.
const badPool = 666

func isBad(text string) bool { return contains(text, "value:666") || contains(text, "value: 666") }

// three returns an Envoy that has three clusters, which one change can alter.
func three(t testing.TB, kind variant) (*source, *server, *envoy) {
	src := newSource(service("a.example", 80, 1, "a"), service("b.example", 80, 2, "a"), service("c.example", 80, 3, "a"),
		pool("a.example", 1), pool("b.example", 1), pool("c.example", 1))
	s := serve(t, src)
	return src, s, newEnvoy(s.connect(kind, nodeA)).start()
}

// TestNACKNames checks that the resource that the text names is blamed, that its
// last accepted version stays, and that all others move on.
func TestNACKNames(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := three(t, kind)
		e.refusing(cds, "Error adding/updating cluster(s) out.b.example|http: it is bad.", isBad)
		src.publish(pool("a.example", 2), pool("b.example", badPool), pool("c.example", 2))
		e.seen = nil
		e.play()
		if a, b, c := e.connections("out.a.example|http"), e.connections("out.b.example|http"), e.connections("out.c.example|http"); a != 2 || b != 1 || c != 2 {
			t.Fatalf("the clusters have %d, %d and %d connections, want 2, the last accepted 1, and 2", a, b, c)
		}
		if n := count(e.seen, cds); n != 2 {
			t.Fatalf("told %v, want what is refused and what is not", e.seen)
		}
		src.publish(pool("c.example", 3))
		e.play()
		if c := e.connections("out.c.example|http"); c != 3 {
			t.Fatalf("cluster c has %d connections: it does not move on", c)
		}
		healed(t, src, e)
	})
}

// TestNACKHalves checks that if the text names no resource, the one to blame is
// found by halves.
func TestNACKHalves(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := three(t, kind)
		e.refusing(cds, "missing ]: [", isBad)
		src.publish(pool("a.example", 2), pool("b.example", badPool), pool("c.example", 2))
		e.play()
		if a, b, c := e.connections("out.a.example|http"), e.connections("out.b.example|http"), e.connections("out.c.example|http"); a != 2 || b != 1 || c != 2 {
			t.Fatalf("the clusters have %d, %d and %d connections, want 2, the last accepted 1, and 2", a, b, c)
		}
		healed(t, src, e)
	})
}

// healed checks that a better object clears the refusal.
func healed(t *testing.T, src *source, e *envoy) {
	t.Helper()
	src.publish(pool("b.example", 4))
	e.play()
	if b := e.connections("out.b.example|http"); b != 4 {
		t.Fatalf("cluster b has %d connections, want 4", b)
	}
	e.seen = nil
	src.publish(pool("b.example", 5))
	e.play()
	if n := count(e.seen, cds); n != 1 {
		t.Fatalf("told %v, want one response for clusters", e.seen)
	}
}

func count(all []response, typeURL string) (n int) {
	for _, r := range all {
		if r.typeURL == typeURL {
			n++
		}
	}
	return n
}

// TestNACKOfEndpointsNamesNobody checks that an Envoy that refuses an address does
// not name its resource.
func TestNACKOfEndpointsNamesNobody(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource()
		for i, host := range []string{"a", "b", "c", "d", "e"} {
			src.put(service(host+".example", 80, i+1, "a"))
		}
		s := serve(t, src)
		e := newEnvoy(s.connect(kind, nodeA))
		bad := func(text string) bool { return contains(text, "10.0.4.1") }
		e.refuses = func(r response) (string, bool) {
			if r.typeURL != eds {
				return "", false
			}
			for _, a := range r.resources {
				if m, _ := a.UnmarshalNew(); bad(prototextOf(m)) {
					return "malformed IP address", true
				}
			}
			return "", false
		}
		e.start()
		for _, host := range []string{"a", "b", "c", "e"} {
			if e.has[eds][host+".example|http"] == nil {
				t.Errorf("the endpoints of %s are missing: %v", host, e.seen)
			}
		}
		if e.has[eds]["d.example|http"] != nil {
			t.Error("the refused endpoints are there")
		}
	})
}

// TestNACKOfTheSuccessor checks that if the second of several unacknowledged
// responses for clusters is refused for the content of the first, the second is not
// blamed.
func TestNACKOfTheSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, _, e := three(t, world)
		src.publish(pool("b.example", badPool))
		first := ofType(e.told(), cds)
		src.publish(pool("c.example", 2))
		second := ofType(e.told(), cds)
		for _, r := range []response{first, second} {
			e.nack(r, "no")
		}
		e.refusing(cds, "no", isBad)
		e.play()
		if b, c := e.connections("out.b.example|http"), e.connections("out.c.example|http"); b != 1 || c != 2 {
			t.Fatalf("the clusters have %d and %d connections, want 1 and 2", b, c)
		}
	})
}

// TestNACKWithdraws checks that what a refused response left out is gone anyway.
func TestNACKWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, _, e := three(t, world)
		e.refusing(cds, "no", isBad)
		src.publish(pool("b.example", badPool))
		first := ofType(e.told(), cds)
		src.withdraw(service("c.example", 80, 3, "a"), pool("c.example", 1))
		e.take(ofType(e.told(), rds))
		second := ofType(e.told(), cds)
		for _, r := range []response{first, second} {
			e.nack(r, "no")
		}
		e.play()
		if e.has[cds]["out.c.example|http"] != nil {
			t.Fatalf("the cluster is there still: %v", e.seen)
		}
	})
}

func ofType(all []response, typeURL string) response {
	i := slices.IndexFunc(all, func(r response) bool { return r.typeURL == typeURL })
	return all[i]
}

// TestNACKThenBack checks that a refused change that is reverted is not sent again.
func TestNACKThenBack(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := three(t, kind)
		e.refusing(cds, "no", isBad)
		src.publish(pool("b.example", badPool))
		e.play()
		e.seen = nil
		src.publish(pool("b.example", 1))
		e.play()
		if n := count(e.seen, cds); n > 1 {
			t.Fatalf("told %v", e.seen)
		}
		if b := e.connections("out.b.example|http"); b != 1 {
			t.Fatalf("cluster b has %d connections, want 1", b)
		}
	})
}

// TestNACKOfANewResource checks that a resource which the proxy never had is
// missing, and everything else is there.
func TestNACKOfANewResource(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := three(t, kind)
		e.refusing(cds, "no", isBad)
		src.publish(service("d.example", 80, 4, "a"), pool("d.example", badPool))
		e.play()
		src.publish(pool("a.example", 9))
		e.play()
		if e.has[cds]["out.d.example|http"] != nil || e.connections("out.a.example|http") != 9 {
			t.Fatalf("the proxy has %v", e.has[cds])
		}
		src.publish(pool("d.example", 9))
		e.play()
		if e.connections("out.d.example|http") != 9 {
			t.Fatal("the healed cluster is missing")
		}
	})
}

// TestNACKIsSaid of the proxy, as long as it refuses what it should have.
func TestNACKIsSaid(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := three(t, kind)
		clusters := func() discovery.TypeStatus {
			all := s.publisher.Proxies()
			if len(all) != 1 {
				t.Fatalf("%v: want one proxy", all)
			}
			return all[0].Types["clusters"]
		}
		for _, words := range []string{"cluster out.b.example|http: it is bad.", "no"} {
			e.refusing(cds, words, isBad)
			src.publish(pool("a.example", 2+len(words)), pool("b.example", badPool))
			e.play()
			if got := clusters(); got.State != discovery.Rejected || got.Error != words {
				t.Fatalf("%+v, want the words %q", got, words)
			}
			src.publish(pool("c.example", 2+len(words)))
			e.play()
			if got := clusters(); got.State != discovery.Rejected {
				t.Fatalf("%+v after another change", got)
			}
			src.publish(pool("b.example", 4))
			if got := clusters(); got.State != discovery.Sent {
				t.Fatalf("%+v while a better one is on its way", got)
			}
			e.play()
			if got := clusters(); got.State != discovery.Synced || s.publisher.Proxies()[0].Revision != s.publisher.Revision() {
				t.Fatalf("%+v after it is healed", got)
			}
		}
	})
}

// TestNACKBehindWhatWarms checks that a proxy that refuses clusters has accepted
// those before them, even while it withholds their ACK because they warm. It keeps
// them, because its routes already lead there.
func TestNACKBehindWhatWarms(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(service("web.example", 80, 1, "a", "b"), service("api.example", 80, 2, "a", "b"), toVersion("api.example", "a"))
		e := newEnvoy(serve(t, src).connect(kind, nodeA)).start()
		e.refusing(cds, "no", isBad)
		src.publish(timeout("api.example", 1)) // Its routes lead to the whole of it again.
		settle()
		src.publish(pool("api.example", badPool))
		settle()
		e.play()
		if !e.routesTo("out.api.example|http") || e.has[cds]["out.api.example|http"] == nil {
			t.Errorf("has %v", e.has[cds])
		}
	})
}
