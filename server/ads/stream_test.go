package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/discovery"
)

func node(id string) *corev3.Node { return &corev3.Node{Id: id} }

func prototextOf(m proto.Message) string { return prototext.MarshalOptions{}.Format(m) }

// TestBasicProtocolOverview checks that the node comes with the first request only,
// and that each response has its own nonce.
func TestBasicProtocolOverview(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		_, c := two(t, kind)
		nonces := map[string]bool{}
		for _, typeURL := range []string{cds, lds} {
			c.subscribe(typeURL)
			r := c.one()
			if c.ack(r); r.nonce == "" || nonces[r.nonce] || r.version == "" || r.typeURL != typeURL {
				t.Fatalf("nonce %q, version %q, type %s", r.nonce, r.version, r.typeURL)
			}
			nonces[r.nonce] = true
		}
	})
}

// TestNodeIdentity checks that an invalid node gets the same error text as in a
// poll.
func TestNodeIdentity(t *testing.T) {
	stating := func(metadata map[string]any) *corev3.Node {
		fields, err := structpb.NewStruct(metadata)
		if err != nil {
			t.Fatal(err)
		}
		return &corev3.Node{Id: nodeA, Metadata: fields}
	}
	inBoth(t, func(t *testing.T, kind variant) {
		s := serve(t, newSource())
		for _, bad := range []struct {
			node *corev3.Node
			want string
		}{
			{nil, `bad node: node "": want four parts`},
			{node("me"), `bad node: node "me": want four parts`},
			{stating(map[string]any{"NAMESPACE": 7}), "bad node: node.metadata.NAMESPACE must be a text"},
			{stating(map[string]any{"NAMESPACE": "a.b"}), `bad node: namespace "a.b": `},
			{stating(map[string]any{"LABELS": "x"}), "bad node: node.metadata.LABELS must be an object whose values are texts"},
			{stating(map[string]any{"LABELS": map[string]any{"app": 5}}), "bad node: node.metadata.LABELS.app must be a text"},
		} {
			c := s.connectAs(kind, bad.node, nil)
			c.say(request{typeURL: cds})
			if got := c.ended(); got != codes.InvalidArgument {
				t.Errorf("%v: %v", bad.node, got)
			}
			if words := status.Convert(c.err).Message(); !strings.HasPrefix(words, bad.want) {
				t.Errorf("%v: %q, want %q", bad.node, words, bad.want)
			}
		}
	})
}

// TestNotReady checks that without a configuration no client receives an empty one.
func TestNotReady(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource()
		src.empty = true
		c := serve(t, src).connect(kind, nodeA)
		c.say(request{typeURL: cds})
		if got := c.ended(); got != codes.Unavailable {
			t.Error(got)
		}
	})
}

// TestStopping ends streams, so that their proxies connect to another replica.
func TestStopping(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		_, s, e := ready(t, kind)
		s.stop()
		if got := e.ended(); got != codes.Unavailable {
			t.Error(got)
		}
	})
}

// TestClosing checks that a client that ends its stream gets no error.
func TestClosing(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		_, _, e := ready(t, kind)
		e.closeSend()
		if got := e.ended(); got != codes.OK {
			t.Error(got)
		}
	})
}

// TestEviction checks that an evicted client may reconnect.
func TestEviction(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		s := serve(t, newSource(service("web.example", 80, 1, "a")), func(o *discovery.Options) { o.MaxProxies = 1 })
		a := s.connect(kind, nodeA)
		a.subscribe(cds)
		a.one()
		b := s.connect(kind, nodeB)
		b.subscribe(cds)
		b.one()
		if got := a.ended(); got != codes.Unavailable {
			t.Error(got)
		}
	})
}

// TestTooManyNames checks that the subscriptions of a stream are bounded.
func TestTooManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := two(t, delta)
		for block := range 3 {
			names := make([]string, 1<<16)
			for i := range names {
				names[i] = fmt.Sprint("name-", block, "-", i)
			}
			c.say(request{typeURL: lds, names: names})
		}
		if got := c.ended(); got != codes.ResourceExhausted {
			t.Error(got)
		}
	})
}

// TestResourceUpdates checks that a state-of-the-world request with a stale nonce
// is ignored; the client repeats it with the newer one.
func TestResourceUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, c := two(t, world)
		c.subscribe(eds, "web.example|http")
		first := c.one()
		c.ack(first)
		src.publish(service("web.example", 80, 3, "a", "b"))
		second := c.one()
		names := []string{"api.example|http", "web.example|http"}
		c.say(request{typeURL: eds, nonce: first.nonce, version: first.version, names: names})
		c.nothing("on a stale nonce")
		c.say(request{typeURL: eds, nonce: second.nonce, version: second.version, names: names})
		wantTold(t, c.told(), "ClusterLoadAssignment[api.example|http]")
	})
}

// TestResourceUpdatesDelta checks that a subscription with a stale nonce is valid.
func TestResourceUpdatesDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, c := two(t, delta)
		c.subscribe(eds, "web.example|http")
		first := c.one()
		c.ack(first)
		src.publish(service("web.example", 80, 3, "a", "b"))
		second := c.one()
		c.say(request{typeURL: eds, nonce: first.nonce, names: []string{"api.example|http"}})
		c.say(request{typeURL: eds, nonce: "never", unsubscribe: []string{"web.example|http"}})
		c.nothing("while one response is under way")
		c.ack(second)
		wantTold(t, c.told(), "ClusterLoadAssignment[api.example|http]")
		src.publish(service("web.example", 80, 4, "a", "b"))
		c.nothing("of what was unsubscribed")
	})
}

// TestRequestsBeforeTheAnswer checks that the names of all requests count.
func TestRequestsBeforeTheAnswer(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		_, c := two(t, kind)
		c.subscribe(eds, "web.example|http")
		c.subscribe(eds, "api.example|http")
		has := map[string]bool{}
		for range 3 {
			for _, r := range c.told() {
				for _, n := range r.names() {
					has[n] = true
				}
				c.ack(r)
			}
		}
		if len(has) != 2 {
			t.Fatalf("told of %v", has)
		}
	})
}

// TestReconnect checks that a client that reconnects receives only the differences,
// from the same server or another one.
func TestReconnect(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		replica := serve(t, src)
		e.seen = nil
		e.again(replica.connect(kind, nodeA))
		got := e.told()
		switch kind {
		case delta:
			wantTold(t, got)
		case world:
			// What was subscribed to by name may have been lost.
			if kinds := texts(got); len(got) != 2 || got[0].typeURL != eds || got[1].typeURL != rds {
				t.Fatalf("told %v", kinds)
			}
		}
		for _, r := range got {
			e.take(r)
		}
		e.play()
		e.sameAs(t, newEnvoy(replica.connect(kind, nodeB)).start())
		src.publish(timeout("web.example", 3))
		wantTold(t, e.told(), "RouteConfiguration[80]")
	})
}

// TestInitialResourceVersions checks that only the differences are sent, removals
// last.
func TestInitialResourceVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, _, e := ready(t, delta)
		src.publish(toVersion("web.example", "a"))
		e.play()
		e.client.end()
		src.publish(toVersion("web.example", "b"), service("new.example", 80, 5, "a"))
		replica := serve(t, src) // It never knew version a.
		e.seen = nil
		e.again(replica.connect(delta, nodeA))
		e.play()
		var clusters []response
		for _, r := range e.seen {
			if r.typeURL == cds {
				clusters = append(clusters, r)
			}
		}
		wantTold(t, clusters, "Cluster["+"out.new.example|http "+clusterOf("web.example", "b")+"]", "Cluster[] without ["+clusterOf("web.example", "a")+"]")
		if last := e.seen[len(e.seen)-1]; last.typeURL != cds || len(last.removed) == 0 {
			t.Fatalf("told %v, want the removal last", e.seen)
		}
		e.sameAs(t, newEnvoy(replica.connect(delta, nodeB)).start())
	})
}

// TestReconnectWithdrawsLast checks that none of the clusters that a proxy arrived
// with is withdrawn until its routes are known.
func TestReconnectWithdrawsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, s, e := ready(t, delta)
		e.client.end()
		c := s.connect(delta, nodeA)
		c.say(request{typeURL: cds, initial: map[string]string{"gone": "1", clusterWeb: "old"}})
		r := c.one()
		if len(r.removed) > 0 || r.resources[clusterWeb] == nil {
			t.Fatalf("told %v, want what differs and nothing withdrawn", r)
		}
		c.ack(r)
		src.publish(service("new.example", 80, 4, "a"))
		if r = c.one(); len(r.removed) > 0 {
			t.Fatalf("told %v", r)
		}
		c.ack(r)
		c.say(request{typeURL: lds, initial: map[string]string{"gone": "1"}})
		listeners := c.one()
		c.say(request{typeURL: rds, names: []string{"80"}, initial: map[string]string{"80": "old"}})
		routes := c.one()
		c.ack(listeners)
		c.nothing("before the routes are acknowledged")
		c.ack(routes)
		wantTold(t, c.told(), "Cluster[] without [gone]")
	})
}

// TestReconnectWithoutRoutes checks that a client that never subscribes to routes
// counts, after a while, as one without routes.
func TestReconnectWithoutRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, e := ready(t, delta)
		e.client.end()
		c := s.connect(delta, nodeA)
		c.say(request{typeURL: cds, initial: map[string]string{"gone": "1", clusterWeb: "old"}})
		c.ack(c.one())
		time.Sleep(15 * time.Second)
		c.nothing("at first")
		time.Sleep(15 * time.Second)
		wantTold(t, c.told(), "Cluster[] without [gone]")
	})
}

// TestReconnectWarms checks that a cluster that changed meanwhile waits for its
// endpoints even if the client states that it has the same.
func TestReconnectWarms(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := ready(t, kind)
		e.client.end()
		src.publish(pool("web.example", 77))
		e.again(s.connect(kind, nodeA))
		e.play()
		if len(e.warming) > 0 || len(e.held) > 0 {
			t.Fatalf("%v waits for ever", e.warming)
		}
	})
}

// TestReconnectAfterAChange checks that if the proxy's routes lead to a cluster
// that was removed meanwhile, it stays until they are replaced.
func TestReconnectAfterAChange(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := ready(t, kind)
		replica := serve(t, src)
		newEnvoy(replica.connect(kind, nodeB)).start()
		src.publish(toVersion("web.example", "a"))
		e.play()
		e.client.end()
		src.publish(toVersion("web.example", "b"))
		for _, at := range []*server{s, replica} {
			e.again(at.connect(kind, nodeA))
			e.play()
		}
		e.sameAs(t, newEnvoy(s.connect(kind, "sidecar~10.9.0.3~c.default~default.svc.cluster.local")).start())
	})
}

// TestReconnectToAnotherReplica, which has never seen the proxy or another one with
// the same view, but still knows the recently removed clusters.
func TestReconnectToAnotherReplica(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := ready(t, kind)
		replica := serve(t, src)
		e.client.end()
		// With an instance, the proxy has a view of its own.
		own := service("own.example", 80, 9, "a")
		src.publish(object("ServiceEntry", "own.example", strings.ReplaceAll(string(own.SpecJSON()), "10.0.9.1", "10.9.0.1")))
		e = newEnvoy(s.connect(kind, nodeA)).start()
		for range 5 {
			src.publish(toVersion("web.example", "a"))
			e.play()
			src.publish(toVersion("web.example", "b"))
			e.again(replica.connect(kind, nodeA))
			e.play()
			s, replica = replica, s
		}
		e.sameAs(t, newEnvoy(serve(t, src).connect(kind, nodeA)).start())
	})
}

// TestReconnectAfterARestart of all servers, with changes that none of them has
// sent.
func TestReconnectAfterARestart(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := ready(t, kind)
		src.publish(toVersion("web.example", "a"))
		e.play()
		s.stop()
		src.put(timeout("web.example", 3))
		src.put(toVersion("web.example", "b"))
		e.again(serve(t, src).connect(kind, nodeA))
		e.play()
		e.sameAs(t, newEnvoy(serve(t, src).connect(kind, nodeA)).start())
	})
}
