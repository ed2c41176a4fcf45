package ads_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/schema"
)

const sds = discovery.SecretType

// late is a resource that a proxy subscribes to by name after it has accepted
// another one.
type late struct {
	typeURL, first, second string
	node                   string
	objects                []*schema.Object
	blamed                 string         // the object that the second comes from
	better                 *schema.Object // of that name
	other                  *schema.Object // changes the first
}

// lates has a case for every type that an Envoy subscribes to by name.
func lates(t testing.TB) map[string]late {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	secret := func(name, host string) *schema.Object {
		certificate, key := authority.PEM(t, host)
		spec, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
		if err != nil {
			t.Fatal(err)
		}
		return object("Secret", name, string(spec))
	}
	var servers []string
	for _, name := range []string{"a", "b"} {
		servers = append(servers, fmt.Sprintf(
			`{"port":{"number":443,"name":%[1]q,"protocol":"HTTPS"},"hosts":["%[1]s.example"],"tls":{"mode":"SIMPLE","credentialName":%[1]q}}`, name))
	}
	return map[string]late{
		"endpoints": {
			typeURL: eds, first: "a.example|http", second: "b.example|http", node: nodeA,
			objects: []*schema.Object{service("a.example", 80, 1, "a"), service("b.example", 80, 2, "a")},
			blamed:  "b.example", better: service("b.example", 80, 3, "a"), other: service("a.example", 80, 4, "a"),
		},
		"routes": {
			typeURL: rds, first: "80", second: "81", node: nodeA,
			objects: []*schema.Object{service("a.example", 80, 1, "a"), service("b.example", 81, 2, "a"), timeout("a.example", 1), timeout("b.example", 1)},
			blamed:  "timeout-b.example", better: timeout("b.example", 2), other: timeout("a.example", 2),
		},
		"secrets": {
			typeURL: sds, first: "default/a", second: "default/b", node: "router~10.9.0.3~r.default~default.svc.cluster.local",
			objects: []*schema.Object{
				object("Gateway", "edge", `{"servers":[`+strings.Join(servers, ",")+`]}`),
				object("VirtualService", "web", `{"hosts":["*"],"gateways":["edge"],"http":[{"directResponse":{"status":204}}]}`),
				secret("a", "a.example"), secret("b", "b.example"),
			},
			blamed: "b", better: secret("b", "c.example"), other: secret("a", "d.example"),
		},
	}
}

// eachLate runs a test with a server and a proxy for each of lates, in both
// variants.
func eachLate(t *testing.T, test func(t *testing.T, w lateWorld)) {
	for _, what := range []string{"endpoints", "routes", "secrets"} {
		t.Run(what, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				l := lates(t)[what]
				src := newSource(l.objects...)
				s := serve(t, src)
				s.privately = true
				test(t, lateWorld{l, what, src, s, s.connect(kind, l.node)})
			})
		})
	}
}

type lateWorld struct {
	late
	what string
	src  *source
	s    *server
	c    *client
}

// state checks the state of the late resource on the proxies.
func (w lateWorld) state(t *testing.T, state discovery.SyncState, words string) {
	t.Helper()
	wantState(t, w.s, w.what, state, words)
}

// TestNACKOfALateSubscription checks that what a proxy subscribes to later and
// refuses at once counts as refused, although it accepted other resources of the
// same set before. The rest moves on, and a better resource clears it.
func TestNACKOfALateSubscription(t *testing.T) {
	eachLate(t, func(t *testing.T, w lateWorld) {
		w.c.subscribe(w.typeURL, w.first)
		w.c.ack(w.c.told()...)
		w.c.subscribe(w.typeURL, w.second)
		w.c.nackEach("half of it", w.second)
		w.state(t, discovery.Rejected, "half of it")
		wantBlame(t, w.s, w.blamed)

		w.src.publish(w.other)
		if first := w.c.nackEach("half of it", w.second); first == 0 {
			t.Error("the first, which was accepted, does not move on")
		}
		w.state(t, discovery.Rejected, "half of it")

		w.src.publish(w.better)
		w.c.ack(w.c.told()...)
		w.state(t, discovery.Synced, "")
		wantBlame(t, w.s)
	})
}

// nackEach refuses all responses that contain a name and accepts the rest. It
// returns the number accepted.
func (c *client) nackEach(words, name string) (accepted int) {
	c.t.Helper()
	for range 100 {
		all := c.told()
		if len(all) == 0 {
			return accepted
		}
		for _, r := range all {
			if r.resources[name] != nil {
				c.nack(r, words)
				continue
			}
			accepted++
			c.ack(r)
		}
	}
	c.t.Fatal("told without end")
	return 0
}

func wantState(t testing.TB, s *server, what string, state discovery.SyncState, words string) {
	t.Helper()
	synctest.Wait()
	if got := s.publisher.Proxies()[0].Types[what]; got.State != state || got.Error != words {
		t.Fatalf("%s are %+v, want %s %q", what, got, state, words)
	}
}

// TestNACKOfALateSubscriptionBesideAnother checks that in a response with a newer
// form of an accepted resource and a late one, the late one can be to blame.
func TestNACKOfALateSubscriptionBesideAnother(t *testing.T) {
	eachLate(t, func(t *testing.T, w lateWorld) {
		w.c.subscribe(w.typeURL, w.first)
		first := w.c.one() // Until it is answered, nothing else is sent.
		w.src.publish(w.other)
		w.c.subscribe(w.typeURL, w.second)
		w.c.ack(first)
		if accepted := w.c.nackEach("half of it", w.second); accepted == 0 {
			t.Error("the first does not move on")
		}
		w.state(t, discovery.Rejected, "half of it")
		wantBlame(t, w.s, w.blamed)
		w.src.publish(w.better)
		w.c.ack(w.c.told()...)
		w.state(t, discovery.Synced, "")
	})
}

// TestNACKOfWhatIsWantedNoMore checks that a client that unsubscribes from what it
// refused refuses nothing, and that it receives the resource again when it
// resubscribes.
func TestNACKOfWhatIsWantedNoMore(t *testing.T) {
	eachLate(t, func(t *testing.T, w lateWorld) {
		w.c.subscribe(w.typeURL, w.first, w.second)
		w.c.nackEach("half of it", w.second)
		w.state(t, discovery.Rejected, "half of it")
		w.c.unsubscribe(w.typeURL, w.second)
		w.c.nothing("of what is not asked for any more")
		w.state(t, discovery.Synced, "")
		wantBlame(t, w.s)
		w.c.subscribe(w.typeURL, w.second)
		r := w.c.one()
		if r.resources[w.second] == nil {
			t.Fatalf("told %v, want what is asked for again", r)
		}
		w.c.ack(r)
		w.state(t, discovery.Synced, "")
		// It accepted that, unsubscribed, and refuses the same now.
		w.c.unsubscribe(w.typeURL, w.second)
		w.c.subscribe(w.typeURL, w.second)
		w.c.nackEach("no more", w.second)
		w.state(t, discovery.Rejected, "no more")
		wantBlame(t, w.s, w.blamed)
	})
}

// TestNACKOfWhatWasAccepted checks that a proxy may refuse what it accepted, for
// example after its operator has set a lower bound.
func TestNACKOfWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lates(t)["endpoints"]
		src := newSource(l.objects...)
		s := serve(t, src)
		c := s.connect(delta, l.node)
		c.subscribe(l.typeURL, l.first, l.second)
		c.ack(c.one())
		c.subscribe(l.typeURL, l.second)
		c.nack(c.one(), "no more")
		c.nothing("after it has refused what it took")
		wantState(t, s, "endpoints", discovery.Rejected, "no more")
		src.publish(l.better)
		c.ack(c.one())
		wantState(t, s, "endpoints", discovery.Synced, "")
	})
}
