package ads_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// apartWorld is a server with the Secrets a and b, and a proxy whose listeners come over ADS
// and whose secrets come over a stream of their own.
type apartWorld struct {
	late
	src                 *source
	s                   *server
	everything, secrets *client
}

// inApart runs a case with an apartWorld, in both variants.
func inApart(t *testing.T, test func(t *testing.T, w apartWorld)) {
	inBoth(t, func(t *testing.T, kind variant) {
		l := lates(t)["secrets"]
		src := newSource(l.objects...)
		s := serve(t, src)
		s.privately = true
		w := apartWorld{l, src, s, newEnvoy(s.connect(kind, l.node)).start().client, s.connectSecrets(kind, &corev3.Node{Id: l.node})}
		test(t, w)
	})
}

// proxy returns the status of the only proxy.
func (w apartWorld) proxy(t *testing.T) discovery.ProxyStatus {
	t.Helper()
	synctest.Wait()
	all := w.s.publisher.Proxies()
	if len(all) != 1 || len(w.s.publisher.Roster()) != 1 {
		t.Fatalf("%d proxies and %d in the inventory, want one: %+v", len(all), len(w.s.publisher.Roster()), all)
	}
	return all[0]
}

// runs checks whether the proxy runs an object at the published revision.
func (w apartWorld) runs(t *testing.T, o *schema.Object, want bool) {
	t.Helper()
	synctest.Wait()
	of := statusOf(w.s, o)
	if of.Proxies != 1 || (of.Running == 1) != want {
		t.Errorf("%s: %+v, want running %t", o.Key(), of, want)
	}
	if runs := w.proxy(t).Revision == w.s.publisher.Revision(); runs != want {
		t.Errorf("the proxy is at revision %d of %d", w.proxy(t).Revision, w.s.publisher.Revision())
	}
}

// TestSecretsApartAreOfOneProxy checks that a stream of secrets is no second proxy, and that
// the proxy runs a change of a Secret only when it has acknowledged it there.
func TestSecretsApartAreOfOneProxy(t *testing.T) {
	inApart(t, func(t *testing.T, w apartWorld) {
		w.proxy(t)
		w.secrets.subscribe(w.typeURL, w.first)
		first := w.secrets.one()
		if !strings.Contains(string(first.resources[w.first].GetValue()), "BEGIN PRIVATE KEY") {
			t.Fatalf("sent %v", first)
		}
		w.secrets.ack(first)
		w.runs(t, w.other, true)
		if s := w.proxy(t).Types["secrets"]; s.State != discovery.Synced {
			t.Errorf("secrets are %+v", s)
		}

		w.src.publish(w.other)
		rotated := w.secrets.one()
		w.everything.nothing("of a secret that it does not take there")
		w.runs(t, w.other, false)
		w.secrets.ack(rotated)
		w.runs(t, w.other, true)

		// A change of something else is in effect without a word over this stream.
		w.src.publish(w.better)
		w.secrets.nothing("of a secret that is not asked for")
		w.runs(t, w.better, true)
	})
}

// TestNACKOfASecretApart checks that a refusal counts for the proxy, and ends with a better
// secret.
func TestNACKOfASecretApart(t *testing.T) {
	inApart(t, func(t *testing.T, w apartWorld) {
		w.secrets.subscribe(w.typeURL, w.second)
		w.secrets.nackEach("half of it", w.second)
		if s := w.proxy(t).Types["secrets"]; s.State != discovery.Rejected || s.Error != "half of it" {
			t.Errorf("secrets are %+v", s)
		}
		wantBlame(t, w.s, w.blamed)
		w.runs(t, w.better, false)
		w.src.publish(w.better)
		w.secrets.ack(w.secrets.one())
		wantBlame(t, w.s)
		w.runs(t, w.better, true)
	})
}

// TestUnknownSecretApart checks that in delta the answer for a name without a secret says so,
// and that the secret follows as soon as there is one.
func TestUnknownSecretApart(t *testing.T) {
	inApart(t, func(t *testing.T, w apartWorld) {
		w.src.withdraw(w.other)
		w.everything.told()
		w.secrets.subscribe(w.typeURL, w.first, "default/none", "default", "ROOTCA")
		if w.secrets.kind == delta {
			r := w.secrets.one()
			if want := []string{"ROOTCA", "default", "default/a", "default/none"}; !slices.Equal(r.removed, want) || len(r.resources) > 0 {
				t.Errorf("told %v, want %v removed", r, want)
			}
			w.secrets.ack(r)
		} else {
			w.secrets.nothing("of secrets that do not exist")
		}
		w.src.publish(w.other)
		if r := w.secrets.one(); r.resources[w.first] == nil {
			t.Errorf("told %v", r)
		}
	})
}

// TestOnlySecretsAreNoProxy checks that an Envoy which takes nothing but secrets gets them,
// also changes, and does not count. It counts as soon as it takes the rest.
func TestOnlySecretsAreNoProxy(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		l := lates(t)["secrets"]
		src := newSource(l.objects...)
		s := serve(t, src)
		s.privately = true
		w := apartWorld{late: l, src: src, s: s, secrets: s.connectSecrets(kind, &corev3.Node{Id: l.node})}
		w.secrets.subscribe(l.typeURL, l.first)
		w.secrets.ack(w.secrets.one())
		src.publish(l.other)
		w.secrets.ack(w.secrets.one())
		absent := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if n := len(s.publisher.Proxies()); n != 0 {
				t.Errorf("%s: %d proxies", when, n)
			}
			if of := statusOf(s, l.other); of.Proxies != 0 {
				t.Errorf("%s: %+v", when, of)
			}
			if n := len(s.publisher.Absent()); n != want {
				t.Errorf("%s: %d are absent, want %d", when, n, want)
			}
		}
		absent("with secrets alone", 0)
		w.everything = newEnvoy(s.connect(kind, l.node)).start().client
		w.runs(t, l.other, true)

		// It does not count any more when that ends, however long its secrets go on.
		w.everything.end()
		absent("without its listeners", 1)
		time.Sleep(time.Hour)
		src.publish(l.better, l.objects[2])
		w.secrets.ack(w.secrets.one())
		absent("an hour later", 1)
		again := s.connectSecrets(kind, &corev3.Node{Id: l.node})
		again.subscribe("", l.first) // A request need not name the type.
		again.one()
		absent("with another stream of secrets", 1)
	})
}

// TestStreamsOfSecretsAreBounded checks that of too many streams of one proxy the oldest ends,
// and that the stream of its configuration stays.
func TestStreamsOfSecretsAreBounded(t *testing.T) {
	inApart(t, func(t *testing.T, w apartWorld) {
		w.secrets.subscribe(w.typeURL, w.first)
		w.secrets.ack(w.secrets.one())
		for range 127 {
			c := w.s.connectSecrets(w.secrets.kind, &corev3.Node{Id: w.node})
			c.subscribe(w.typeURL, w.first)
			c.ack(c.one())
		}
		w.src.publish(w.other)
		w.secrets.ack(w.secrets.one())
		last := w.s.connectSecrets(w.secrets.kind, &corev3.Node{Id: w.node})
		last.subscribe(w.typeURL, w.first)
		last.one()
		if code := w.secrets.ended(); code != codes.Unavailable {
			t.Errorf("the oldest ended with %v", code)
		}
		w.src.publish(through("edge", 1))
		w.everything.told()
		w.proxy(t)
	})
}

// TestWrongStreamOfSecrets checks which streams end at once.
func TestWrongStreamOfSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		node    *corev3.Node
		typeURL string
		words   string
	}{
		"for another type": {&corev3.Node{Id: nodeA}, cds, "a stream of secrets has no resources of type"},
		"without a node":   {nil, sds, "node"},
		"of gRPC":          {&corev3.Node{Id: nodeA, UserAgentName: "gRPC Go"}, sds, "gRPC without a proxy is sent no secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				c := serve(t, newSource()).connectSecrets(kind, tc.node)
				c.subscribe(tc.typeURL, "default/a")
				if code := c.ended(); code != codes.InvalidArgument || !strings.Contains(c.err.Error(), tc.words) {
					t.Errorf("ended with %v", c.err)
				}
			})
		})
	}
}
