package status_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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
	old := servertest.StartReplica(t, mem)
	made := old.Create("split")
	old.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	old.Watch("&statusEvents=true").Until(made.Metadata.ResourceVersion, "NoProxies")

	untilAfter(t, time.Now().Truncate(time.Second))
	far := servertest.StartReplica(t, mem, func(o *server.Options) { o.ProxyReturn = time.Hour })
	here := servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = &servertest.Register{Known: map[string]string{"far": far.URL}} })
	for _, w := range []*servertest.World{far, here} {
		seen := w.Watch("&statusEvents=true")
		s := seen.Until(made.Metadata.ResourceVersion, "NoProxiesYet")
		if c := s.Condition("Programmed"); c.Status != metav1.ConditionUnknown {
			t.Errorf("before they are back: %+v", c)
		}
		w.Want(http.StatusOK, "GET", "/debug/problems", "")
		p := w.Connect(1)
		seen.Until(made.Metadata.ResourceVersion, "Programmed")
		p.Leave()
		seen.Until(made.Metadata.ResourceVersion, "NoProxiesYet")
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
	w := servertest.StartReplica(t, memory.New(), func(o *server.Options) { o.ProxyReturn = time.Hour })
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	made := w.Create("split")
	w.Watch("&statusEvents=true").Until(made.Metadata.ResourceVersion, "NoProxies")
}
