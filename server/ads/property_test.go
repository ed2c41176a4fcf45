package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestMakeBeforeBreakProperty checks that whatever rules and services change, and
// whenever a proxy refuses, is cut off and reconnects to another replica, it never
// routes to a cluster that it does not have (envoy.check), and ends with the same
// state as a fresh one.
func TestMakeBeforeBreakProperty(t *testing.T) {
	outside.Slow(t)
	for _, kind := range []variant{world, delta} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(rt *rapid.T, t *testing.T) {
				w := newDrawnWorld(rt, t, kind)
				defer w.stop()
				for range rapid.IntRange(1, 12).Draw(rt, "steps") {
					w.step(rapid.SampledFrom(w.steps()).Draw(rt, "step"))
				}
				w.end()
			})
		})
	}
}

// inBubble checks a property in bubbles. It passes rapid's failures out of them.
func inBubble(t *testing.T, property func(*rapid.T, *testing.T)) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(t *testing.T) {
			defer func() { failure = recover() }()
			property(rt, t)
		})
		// rapid distinguishes failures by their source line.
		switch fmt.Sprintf("%T", failure) {
		case "<nil>":
		case "rapid.invalidData":
			panic(failure)
		default:
			panic(failure)
		}
	})
}

// drawnWorld is two replicas and a proxy on one of them.
type drawnWorld struct {
	*rapid.T
	src      *source
	replicas []*server
	kind     variant
	envoy    *envoy
	words    bool // whether refusals name the resource to blame
}

func newDrawnWorld(rt *rapid.T, t *testing.T, kind variant) *drawnWorld {
	w := &drawnWorld{T: rt, kind: kind, words: rapid.Bool().Draw(rt, "words")}
	w.src = newSource(service("web.example", 80, 1, "a", "b"), service("api.example", 80, 2, "a", "b"))
	w.replicas = []*server{serve(t, w.src), serve(t, w.src)}
	w.envoy = newEnvoy(w.replicas[0].connect(kind, nodeA))
	w.envoy.t = failing{t, rt}
	w.envoy.refuses = w.refuses
	w.envoy.start()
	w.envoy.serving = kind == delta // In the other variant a proxy cannot say which endpoints it comes with.
	return w
}

// failing reports to rapid, which then looks for a smaller failing case.
type failing struct {
	testing.TB
	rt *rapid.T
}

func (f failing) Fatalf(format string, args ...any) { f.rt.Fatalf(format, args...) }
func (f failing) Errorf(format string, args ...any) { f.rt.Errorf(format, args...) }
func (f failing) Fatal(args ...any)                 { f.rt.Fatal(args...) }

// refuses refuses bad resources, from any replica.
func (w *drawnWorld) refuses(r response) (words string, refuse bool) {
	for name, a := range r.resources {
		m, err := a.UnmarshalNew()
		if err != nil {
			w.Fatal(err)
		}
		if text := prototextOf(m); isBad(text) || contains(text, "seconds:666") || contains(text, "10.0.66.") {
			refuse = true
			if w.words {
				words += " " + name
			}
		}
	}
	return "no:" + words, refuse
}

func (w *drawnWorld) steps() []string {
	return []string{"version", "version", "timeout", "pool", "service", "remove", "read", "play", "play", "elsewhere", "restart"}
}

func (w *drawnWorld) step(kind string) {
	host := rapid.SampledFrom([]string{"web.example", "api.example"}).Draw(w.T, "host")
	n := rapid.SampledFrom([]int{1, 2, 3, badPool}).Draw(w.T, "n")
	version := rapid.SampledFrom([]string{"a", "b"}).Draw(w.T, "version")
	w.Logf("%s %s n=%d version=%s, after %v", kind, host, n, version, w.envoy.seen)
	w.envoy.seen = nil
	switch kind {
	case "version":
		w.src.publish(toVersion(host, version))
	case "timeout":
		w.src.publish(timeout(host, n))
	case "pool":
		w.src.publish(pool(host, n))
	case "service":
		w.src.publish(service(fmt.Sprintf("x%d.example", n%3), 80+n%2, min(n, 66), "a"))
	case "remove":
		w.src.withdraw(toVersion(host, version), service(fmt.Sprintf("x%d.example", n%3), 80, 1, "a"))
	case "read":
		w.envoy.takeOne()
	case "play":
		w.envoy.play()
	case "elsewhere":
		at := rapid.SampledFrom(w.replicas).Draw(w.T, "replica")
		w.envoy.again(at.connect(w.kind, nodeA))
	case "restart":
		if w.kind == world {
			// In this variant a proxy cannot state that it has what no server remembers.
			w.mend()
		}
		i := rapid.IntRange(0, 1).Draw(w.T, "which")
		w.replicas[i].stop()
		w.replicas[i] = serve(w.replicas[i].t, w.src)
		w.envoy.again(w.replicas[i].connect(w.kind, nodeA))
	}
}

// mend replaces everything that is refused, and makes the proxy accept what is
// there.
func (w *drawnWorld) mend() {
	for _, host := range []string{"web.example", "api.example"} {
		w.src.put(pool(host, 50), timeout(host, 50))
	}
	for i := range 3 {
		w.src.remove(service(fmt.Sprintf("x%d.example", i), 80, 1, "a"))
	}
	settle()
	w.envoy.play()
	if len(w.envoy.warming)+len(w.envoy.held) > 0 {
		w.Fatalf("for ever waiting for %v, with %v not acknowledged, told %v", w.envoy.warming, w.envoy.held, w.envoy.seen)
	}
}

// end compares the proxy with a fresh one.
func (w *drawnWorld) end() {
	w.mend()
	fresh := newEnvoy(w.replicas[1].connect(w.kind, nodeB))
	fresh.t = w.envoy.t
	w.envoy.sameAs(w.envoy.t, fresh.start())
	fresh.end()
}

func (w *drawnWorld) stop() {
	w.envoy.end()
	for _, r := range w.replicas {
		r.stop()
	}
	synctest.Wait()
}
