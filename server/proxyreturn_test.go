package server_test

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestProgrammedAfterARestart checks that while proxies may reconnect to a replica,
// this one or another, no object is programmed for lack of proxies. Proxies that
// have reconnected count.
func TestProgrammedAfterARestart(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	old := startReplica(t, mem)
	made := old.create("split")
	old.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	old.watch("&statusEvents=true").until(made.Metadata.ResourceVersion, "NoProxies")

	untilAfter(t, time.Now().Truncate(time.Second))
	far := startReplica(t, mem, func(o *server.Options) { o.ProxyReturn = time.Hour })
	here := startReplica(t, mem, func(o *server.Options) { o.Peers = &register{others: map[string]string{"far": far.url}} })
	for _, w := range []*world{far, here} {
		seen := w.watch("&statusEvents=true")
		s := seen.until(made.Metadata.ResourceVersion, "NoProxiesYet")
		if c := s.condition("Programmed"); c.Status != metav1.ConditionUnknown {
			t.Errorf("before they are back: %+v", c)
		}
		w.want(http.StatusOK, "GET", "/debug/problems", "")
		p := w.connect(1)
		seen.until(made.Metadata.ResourceVersion, "Programmed")
		p.Leave()
		seen.until(made.Metadata.ResourceVersion, "NoProxiesYet")
	}
}

// untilAfter waits for the next second, because creation times have whole seconds.
func untilAfter(t *testing.T, second time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(second.Add(time.Second))):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// TestProgrammedInANewMesh checks that a replica which starts with an empty mesh
// waits for no proxies.
func TestProgrammedInANewMesh(t *testing.T) {
	w := startReplica(t, memory.New(), func(o *server.Options) { o.ProxyReturn = time.Hour })
	w.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	made := w.create("split")
	w.watch("&statusEvents=true").until(made.Metadata.ResourceVersion, "NoProxies")
}
