package ads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

// poisoned reports whether an Envoy of these tests refuses a route table.
func poisoned(text string) bool {
	return contains(text, "seconds:666") || contains(text, "seconds: 666")
}

// refusesPoison makes an Envoy refuse every table with poison in it. The test fails
// if a table that the Envoy refused is sent again, because the Envoy does not
// change its mind. Call forget before a change.
func (e *envoy) refusesPoison(words func(text string) string) (forget func()) {
	refused := map[string]bool{}
	e.refuses = func(r response) (string, bool) {
		if r.typeURL != rds {
			return "", false
		}
		for name, a := range r.resources {
			text := prototextOf(decoded[*routev3.RouteConfiguration](e.t, a))
			if refused[text] {
				e.t.Fatalf("table %s is sent again, which was refused", name)
			}
			if poisoned(text) {
				refused[text] = true
				return words(text), true
			}
		}
		return "", false
	}
	return func() { clear(refused) }
}

func noName(string) string { return "missing ]: [" }

// timeoutOf returns the timeout of the route of a service on its port, or "503" if
// it is closed.
func (e *envoy) timeoutOf(host string) string {
	e.t.Helper()
	for _, a := range e.has[rds] {
		for _, h := range decoded[*routev3.RouteConfiguration](e.t, a).GetVirtualHosts() {
			if !slices.Contains(h.GetDomains(), host) {
				continue
			}
			r := h.GetRoutes()[0]
			if d := r.GetDirectResponse(); d != nil {
				return fmt.Sprint(d.GetStatus())
			}
			return r.GetRoute().GetTimeout().AsDuration().String()
		}
	}
	return "none"
}

func (e *envoy) wantTimeouts(want map[string]string) {
	e.t.Helper()
	got := map[string]string{}
	for host := range want {
		got[host] = e.timeoutOf(host)
	}
	if !maps.Equal(got, want) {
		e.t.Fatalf("timeouts are %v, want %v", got, want)
	}
}

// many returns an Envoy with n services on one port, from h0.example on, with a
// timeout of a second.
func many(t testing.TB, kind variant, n int) (*source, *server, *envoy) {
	src := newSource()
	for i := range n {
		src.put(service(hostOf(i), 80, i+1, "a"), timeout(hostOf(i), 1))
	}
	s := serve(t, src)
	return src, s, newEnvoy(s.connect(kind, nodeA)).start()
}

func hostOf(i int) string { return fmt.Sprintf("h%d.example", i) }

// TestNACKOfARoute checks that only the rule to blame in a refused table stays as
// it was, that only it is blamed, and that every other rule moves on.
func TestNACKOfARoute(t *testing.T) {
	for name, words := range map[string]func(string) string{
		"that names nothing":       noName,
		"that names the host":      func(string) string { return "route in virtual host h3.example:80 is bad" },
		"that names the wrong one": func(string) string { return "virtual host h1.example:80 is bad" },
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src, s, e := many(t, kind, 8)
				e.refusesPoison(words)
				e.seen = nil
				var changes []*schema.Object
				for i := range 8 {
					changes = append(changes, timeout(hostOf(i), 2))
				}
				changes[3] = timeout(hostOf(3), 666)
				src.publish(changes...)
				e.play()
				want := map[string]string{}
				for i := range 8 {
					want[hostOf(i)] = "2s"
				}
				want[hostOf(3)] = "1s"
				e.wantTimeouts(want)
				if n := count(e.seen, rds); n > 8 {
					t.Errorf("told %d times to find one of 8", n)
				}
				wantBlame(t, s, "timeout-h3.example")

				src.publish(timeout(hostOf(5), 3))
				e.play()
				want[hostOf(5)] = "3s"
				e.wantTimeouts(want)
				wantBlame(t, s, "timeout-h3.example")

				src.publish(timeout(hostOf(3), 4))
				e.play()
				want[hostOf(3)] = "4s"
				e.wantTimeouts(want)
				wantBlame(t, s)
			})
		})
	}
}

// TestNACKOfARouteHoldsUpNobodyElse checks that once a proxy has the table without
// the rule that it refuses, it runs all other objects, and not before.
func TestNACKOfARouteHoldsUpNobodyElse(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := many(t, kind, 8)
		e.refusesPoison(noName)
		src.publish(timeout(hostOf(3), 666), timeout(hostOf(5), 2))
		for standsAt(s, hostOf(3)).Refusals == nil {
			if running := standsAt(s, hostOf(5)).Running; running != 0 {
				t.Fatalf("%d run the other rule while who is to blame is searched for", running)
			}
			e.takeOne()
		}
		e.play()
		src.publish(timeout(hostOf(6), 2))
		e.play()
		for i := range 8 {
			want := 1
			if i == 3 {
				want = 0
			}
			if got := standsAt(s, hostOf(i)); got.Proxies != 1 || got.Running != want || (len(got.Refusals) > 0) != (i == 3) {
				t.Errorf("rule %d: %+v, want %d running", i, got, want)
			}
		}
		src.publish(timeout(hostOf(3), 4))
		e.play()
		if got := standsAt(s, hostOf(3)); got.Running != 1 || got.Refusals != nil {
			t.Errorf("healed: %+v", got)
		}
	})
}

// standsAt is how the rule of a host stands at what is published.
func standsAt(s *server, host string) discovery.ObjectStatus {
	name := timeout(host, 1).Meta.Name
	all := s.publisher.ObjectStatuses(nil)
	i := slices.IndexFunc(all.Objects, func(o *schema.Object) bool { return o.Meta.Name == name })
	o := all.Objects[i]
	return all.Of(diag.Ref{Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: name}, all.Revision)
}

// wantBlame checks that exactly these objects are blamed for refusals.
func wantBlame(t testing.TB, s *server, names ...string) {
	t.Helper()
	var got []string
	all := s.publisher.ObjectStatuses(nil)
	for _, o := range all.Objects {
		if of := all.Of(diag.Ref{Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name}, 0); len(of.Refusals) > 0 {
			got = append(got, o.Meta.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		t.Fatalf("%v are blamed, want %v", got, names)
	}
	for _, p := range s.publisher.Report().Problems {
		if strings.Contains(p.Message, "refuses") && !slices.Contains(names, p.Object.Name) {
			t.Errorf("a problem of %q: %s", p.Object.Name, p.Message)
		}
	}
}

// TestNACKOfAFreshTable checks that a proxy that has never accepted a table gets
// all rules but the one that it refuses, whose requests go nowhere.
func TestNACKOfAFreshTable(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, first := many(t, kind, 8)
		first.end()
		src.publish(timeout(hostOf(3), 666))
		e := newEnvoy(s.connect(kind, nodeB))
		e.refusesPoison(noName)
		e.start()
		want := map[string]string{hostOf(3): "503"}
		for _, i := range []int{0, 1, 2, 4, 5, 6, 7} {
			want[hostOf(i)] = "1s"
		}
		e.wantTimeouts(want)
		wantBlame(t, s, "timeout-h3.example")
		src.withdraw(timeout(hostOf(3), 1))
		e.play()
		if got := e.timeoutOf(hostOf(3)); got == "503" {
			t.Fatalf("the rule is gone, and its requests still get %s", got)
		}
		wantBlame(t, s)
	})
}

// TestPoisonProperty checks that, whichever rules of a table are bad and however
// they change, a proxy that refuses every table with a bad rule has for each host
// what the newest rule says, or if that is bad, the last rule that it accepted; and
// that only bad rules are blamed.
func TestPoisonProperty(t *testing.T) {
	outside.Slow(t)
	for _, kind := range []variant{world, delta} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(rt *rapid.T, t *testing.T) {
				w := newPoisonedWorld(rt, t, kind)
				for range rapid.IntRange(1, 6).Draw(rt, "changes") {
					w.change()
				}
				w.envoy.end()
				w.server.stop()
				synctest.Wait()
			})
		})
	}
}

type poisonedWorld struct {
	*rapid.T
	t      testing.TB
	src    *source
	server *server
	envoy  *envoy
	now    []string // by host: a timeout in s, "666" for a bad rule, "none" without a rule
	taken  []string // the last accepted version of each rule
	forget func()
}

func newPoisonedWorld(rt *rapid.T, t *testing.T, kind variant) *poisonedWorld {
	n := rapid.IntRange(1, 9).Draw(rt, "hosts")
	w := &poisonedWorld{T: rt, t: t}
	w.src, w.server, w.envoy = many(t, kind, n)
	w.envoy.t = failing{t, rt}
	words := noName
	if rapid.Bool().Draw(rt, "words") {
		host := rapid.IntRange(0, n-1).Draw(rt, "named")
		words = func(string) string { return "virtual host " + hostOf(host) + ":80 is bad" }
	}
	w.forget = w.envoy.refusesPoison(words)
	w.now, w.taken = slices.Repeat([]string{"1"}, n), slices.Repeat([]string{"1s"}, n)
	return w
}

// draw changes some rules.
func (w *poisonedWorld) draw() {
	for i := range w.now {
		w.now[i] = rapid.SampledFrom([]string{w.now[i], "1", "2", "3", "666"}).Draw(w.T, hostOf(i))
		seconds := 0
		fmt.Sscan(w.now[i], &seconds)
		w.src.put(timeout(hostOf(i), seconds))
	}
	w.envoy.seen = nil
	w.forget()
	settle()
}

// change changes some rules, and checks what the proxy makes of them.
func (w *poisonedWorld) change() {
	w.draw()
	w.envoy.play()
	want, bad := map[string]string{}, []string{}
	for i, now := range w.now {
		if now == "666" {
			bad = append(bad, "timeout-"+hostOf(i))
		} else {
			w.taken[i] = now + "s"
		}
		want[hostOf(i)] = w.taken[i]
	}
	w.Logf("now %v, told %v", w.now, w.envoy.seen)
	w.envoy.wantTimeouts(want)
	slices.Sort(bad)
	wantBlame(w.envoy.t, w.server, bad...)
	if n, most := count(w.envoy.seen, rds), 2+8*len(w.now); n > most {
		w.Fatalf("told %d times, want %d at most", n, most)
	}
}

// TestChangesDuringTheSearchProperty checks that rules which change, and a proxy which
// reconnects, while a search for the bad rules of a table is under way never have a good
// rule blamed: once the proxy has processed everything, it has the newest version of each
// good rule, and only bad rules are blamed.
func TestChangesDuringTheSearchProperty(t *testing.T) {
	for _, kind := range []variant{world, delta} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(rt *rapid.T, t *testing.T) {
				w := newPoisonedWorld(rt, t, kind)
				for range rapid.IntRange(2, 6).Draw(rt, "changes") {
					if rapid.IntRange(0, 3).Draw(rt, "reconnects") == 0 {
						w.envoy.again(w.server.connect(kind, nodeA))
					}
					w.draw()
					for range rapid.IntRange(0, 4).Draw(rt, "responses") {
						w.envoy.takeOne()
					}
				}
				w.wantGood()
				w.envoy.end()
				w.server.stop()
				synctest.Wait()
			})
		})
	}
}

// wantGood has the proxy process everything and checks the good rules.
func (w *poisonedWorld) wantGood() {
	w.envoy.play()
	want, bad := map[string]string{}, []string{}
	for i, now := range w.now {
		if now == "666" {
			bad = append(bad, "timeout-"+hostOf(i))
		} else {
			want[hostOf(i)] = now + "s"
		}
	}
	w.Logf("now %v, told %v", w.now, w.envoy.seen)
	w.envoy.wantTimeouts(want)
	slices.Sort(bad)
	wantBlame(w.envoy.t, w.server, bad...)
}
