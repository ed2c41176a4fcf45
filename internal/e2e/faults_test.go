package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// faultsFor makes TestNoRequestFails go on for a while; see make soak.
var faultsFor = flag.Duration("faults", 0, "how long to go on with faults drawn at random")

// TestNoRequestFails: whatever changes, dies, or is cut, a constant stream of
// requests sees no failure that no rule asks for, and the next rule, one that
// needs clusters that the Envoy has not had, is live.
func TestNoRequestFails(t *testing.T) {
	outside.Slow(t)
	for _, api := range []string{"delta", "ads", "rest"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			w := openReplicated(t, api)
			ctx, stop := context.WithCancel(t.Context())
			w.flow.begin(ctx, w.moved.Replace("127.0.0.1:15002"))
			defer func() {
				stop()
				w.flow.done.Wait()
				if failures, any := w.flow.failed(); any {
					t.Error(failures)
				}
				t.Logf("requests %v", w.flow.total)
			}()
			for i, f := range faults {
				w.suffer(f, i)
			}
			begin, random := time.Now(), rand.New(rand.NewPCG(1, 2))
			for i := len(faults); time.Since(begin) < *faultsFor && !t.Failed(); i++ {
				all := append(faults, slowFaults...)
				w.suffer(all[random.IntN(len(all))], i)
			}
		})
	}
}

// fault is something that happens to a world. It must have happened, to be seen,
// when do returns; the rule that do is given is written at the worst moment. What
// mend returns to is a world that is whole.
type fault struct {
	name string
	do   func(w *replicated, rule func()) (mend func())
}

// destinations are where requests to reviews go, one after the other: each needs
// clusters that the one before has not.
var destinations = [][]string{{"v1"}, {"v2", "v3"}, {"v1", "v2"}, {"v3"}, {"v1"}, {"v2"}, {"v1", "v3"}}

// suffer lets the world have a fault, and waits until a rule that was written
// meanwhile is live, and once more when all is mended.
func (w *replicated) suffer(f fault, i int) {
	w.t.Helper()
	w.flow.now(f.name)
	begin := time.Now()
	versions := destinations[i%len(destinations)]
	mark := 0
	mend := f.do(w, func() {
		w.route(versions)
		mark = w.flow.mark()
	})
	w.live(mark, versions)
	mend()
	w.t.Logf("%s: %v", f.name, time.Since(begin).Round(time.Millisecond))
}

// route has requests to reviews go to these versions alike.
func (w *replicated) route(versions []string) {
	w.t.Helper()
	rule := `
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: reviews, namespace: default}
spec:
  destination: {name: reviews}
  route:
`
	for i, v := range versions {
		share := 100 / len(versions)
		if i == 0 {
			share += 100 % len(versions)
		}
		rule += fmt.Sprintf("  - {labels: {version: %s}, weight: %d}\n", v, share)
	}
	w.says("apply", "route", rule)
}

func (w *replicated) live(mark int, versions []string) {
	w.t.Helper()
	w.wait("the rule to be live", func(context.Context) error { return w.flow.reaches(mark, versions...) })
}

// faults are each done once, in this order.
var faults = []fault{
	{"a rule changes", func(_ *replicated, rule func()) func() {
		rule()
		return nothing
	}},
	{"a rule goes and another comes", func(w *replicated, rule func()) func() {
		w.do("delete", w.file("route"))
		rule()
		return nothing
	}},
	{"an instance moves", moveInstance},
	{"a rule asks for failures", askForFailures},
	{"a rule is refused", refused},
	{"the connection is cut", cutConnection},
	{"its replica dies", killOwn},
	{"its replica stops", stopOwn},
	{"the leader dies", killLeader},
	{"all replicas restart", restartAll},
	{"all replicas restart again", restartAll},
}

// slowFaults are those that only time shows.
var slowFaults = []fault{
	{"its replica hangs", hang},
	{"the network to its replica goes", cutNetwork},
	{"etcd restarts, and all replicas", restartEverything},
}

func nothing() {}

// details is where its first version is, or its second.
const (
	details = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: details, namespace: default}
spec:
  hosts: [details.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  endpoints: [%s]
`
	detailsV1 = "{address: 127.0.0.20, labels: {version: v1}}"
	detailsV2 = "{address: 127.0.0.21, labels: {version: v2}}"
)

// moveInstance has the first version of details where the second one's is, and back.
func moveInstance(w *replicated, rule func()) func() {
	w.moveDetails("v2", detailsV2)
	rule()
	w.moveDetails("v1", detailsV1)
	return nothing
}

func (w *replicated) moveDetails(version, endpoint string) {
	w.t.Helper()
	w.says("apply", "details", fmt.Sprintf(details, endpoint))
	w.wait("details to be at "+version, func(ctx context.Context) error {
		answer, err := get("details")(0).send(ctx, w.client)
		if err == nil && answer.Echo.Version != version {
			err = fmt.Errorf("it is at %q", answer.Echo.Version)
		}
		return err
	})
}

// aborting fails requests with a status that nothing else has.
const aborting = `
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: aborting, namespace: default}
spec:
  destination: {name: ratings}
  httpFault: {abort: {percent: 50, httpStatus: 418}}
`

func askForFailures(w *replicated, rule func()) func() {
	w.failWhile("aborting", aborting, http.StatusTeapot, rule)
	return nothing
}

// unable asks for TLS by a file that no machine has.
var unable = strings.ReplaceAll(secured, "reviews", "ratings")

// refused is a rule that the Envoy refuses: what it is about is closed, and
// everything else goes on.
func refused(w *replicated, rule func()) func() {
	w.failWhile("refused", unable, http.StatusServiceUnavailable, func() {
		w.wait("the refusal to be told", func(ctx context.Context) error {
			states, words, err := w.known(ctx, w.replicas[w.own()])
			if err == nil && states["clusters"] != "REJECTED" || !w.polls() && !strings.Contains(words, "nonexistent") {
				err = fmt.Errorf("it is %v %s", states, words)
			}
			return err
		})
		rule()
	})
	return nothing
}

// failWhile has a rule that makes requests to ratings fail while something is done.
func (w *replicated) failWhile(name, text string, status int, do func()) {
	w.t.Helper()
	w.flow.asks("ratings", status)
	w.says("create", name, text)
	before := w.flow.count("ratings", status)
	w.wait("a failure that the rule asks for", func(context.Context) error {
		if w.flow.count("ratings", status) == before {
			return errors.New("there is none")
		}
		return nil
	})
	do()
	w.do("delete", w.file(name))
	well := 0
	w.wait("ratings to do well again", func(ctx context.Context) error {
		answer, err := get("ratings")(0).send(ctx, w.client)
		if well++; err != nil || answer.Status != http.StatusOK {
			well = 0
		}
		if well < 16 {
			return fmt.Errorf("%d requests went well; %w", well, err)
		}
		return nil
	})
	w.flow.asks("ratings", 0)
}

func cutConnection(w *replicated, rule func()) func() {
	if own := w.own(); w.links[own].Break() == 0 {
		w.t.Error("there was no connection to cut")
	}
	rule()
	return nothing
}

// killOwn kills the replica that the Envoy asks.
func killOwn(w *replicated, rule func()) func() { return loseOwn(w, rule, (*testbed.Process).Kill) }

// stopOwn asks it to end.
func stopOwn(w *replicated, rule func()) func() {
	return loseOwn(w, rule, func(p *testbed.Process) {
		if err := p.Stop(); err != nil {
			w.t.Error(err)
		}
	})
}

func loseOwn(w *replicated, rule func(), lose func(*testbed.Process)) func() {
	own := w.own()
	lose(w.replicas[own].Process)
	<-w.replicas[own].Ended()
	rule()
	return func() {
		if now := w.own(); now == own {
			w.t.Error("the Envoy asks a replica that is gone")
		}
		w.restart(own)
	}
}

// restart returns when the replica can do its work again.
func (w *replicated) restart(i int) {
	w.t.Helper()
	if err := w.replicas[i].Restart(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func killLeader(w *replicated, rule func()) func() {
	leader := w.leader()
	leader.Kill()
	rule()
	if now := w.leader(); now == leader {
		w.t.Error("the leader is the one that is gone")
	}
	return func() {
		if err := leader.Start(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *replicated) leader() *testbed.Member {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	leader, err := w.etcd.Leader(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return leader
}

// restartAll kills all replicas; the rule is taken by the first that is back.
func restartAll(w *replicated, rule func()) func() {
	for _, r := range w.replicas {
		r.Kill()
	}
	for _, r := range w.replicas {
		if err := r.Start(); err != nil {
			w.t.Fatal(err)
		}
	}
	rule()
	return w.ready
}

func (w *replicated) ready() {
	for _, r := range w.replicas {
		if err := r.ready(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// restartEverything is restartAll with etcd.
func restartEverything(w *replicated, rule func()) func() {
	for _, m := range w.etcd.Members {
		m.Kill()
	}
	for _, m := range w.etcd.Members {
		if err := m.Start(); err != nil {
			w.t.Fatal(err)
		}
	}
	return restartAll(w, rule)
}

// hang stops the replica that the Envoy asks, whose connections stay.
func hang(w *replicated, rule func()) func() {
	own := w.own()
	w.hung = w.replicas[own]
	w.hung.Pause()
	rule()
	return func() {
		w.wait("the Envoy to leave it", func(context.Context) error {
			if w.own() == own {
				return errors.New("it is still there")
			}
			return nil
		})
		w.hung.Resume()
		w.hung = nil
	}
}

// cutNetwork has nothing go through to the replica that the Envoy asks.
func cutNetwork(w *replicated, rule func()) func() {
	own := w.own()
	w.links[own].Set(testbed.Silent)
	rule()
	return func() { w.links[own].Set(testbed.Open) }
}
