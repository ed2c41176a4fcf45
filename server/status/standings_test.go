package status_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store/memory"
)

// oneProxyEach returns two replicas with one proxy each that calls reviews: the
// replica, the other's proxy, and a watch of rules with their statuses.
func oneProxyEach(t *testing.T, mem *memory.Store, known *servertest.Register, far *servertest.World) (here *servertest.World, there *simulated.Proxy, seen *servertest.Watching) {
	t.Helper()
	here = servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = known })
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	for _, w := range []*servertest.World{here, far} {
		w.Want(http.StatusOK, "GET", "/debug/problems", "")
	}
	here.Connect(1)
	there = far.Connect(2)
	return here, there, here.Watch("&statusEvents=true")
}

// TestStatusOfAllReplicas checks that proxies of another replica and their refusals
// count, and that while a replica does not answer no object is reported as run by
// all.
func TestStatusOfAllReplicas(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	far := servertest.StartReplica(t, mem)
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	known := &servertest.Register{Known: map[string]string{"far": far.URL}}
	here, there, seen := oneProxyEach(t, mem, known, far)

	first := here.Create("split")
	if s := seen.Until(first.Metadata.ResourceVersion, "Programmed"); s.Programmed.Proxies != 2 {
		t.Errorf("of both: %+v", s)
	}
	there.Hold()
	second := here.Put("split", 50)
	s := seen.Until(second.Metadata.ResourceVersion, "Pending")
	for s.Programmed.Running != 1 {
		s = seen.Until(second.Metadata.ResourceVersion, "Pending")
	}
	there.Accept()
	seen.Until(second.Metadata.ResourceVersion, "Programmed")

	there.Refuse(discovery.RouteType, "half a request")
	third := here.Put("split", 60)
	s = seen.Until(third.Metadata.ResourceVersion, "Rejected")
	if c := s.Condition("Programmed"); !strings.Contains(c.Message, there.Node) {
		t.Errorf("refused there: %+v", c)
	}
	there.Accept()
	fourth := here.Put("split", 70)
	seen.Until(fourth.Metadata.ResourceVersion, "Programmed")

	known.Mu.Lock()
	known.Known["silent"] = silent.URL
	known.Mu.Unlock()
	s = seen.Until(fourth.Metadata.ResourceVersion, "Unknown")
	if c := s.Condition("Programmed"); c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "silent does not answer") || s.Programmed.Running != 2 {
		t.Errorf("with a silent one: %+v", s)
	}
	known.Leave("silent")
	seen.Until(fourth.Metadata.ResourceVersion, "Programmed")
}

// TestStandingsAreForReplicas checks that unchanged statuses are not sent again,
// and that only a replica's own can be requested.
func TestStandingsAreForReplicas(t *testing.T) {
	w := servertest.WithReviews(t)
	w.Want(http.StatusBadRequest, "GET", "/apis/registry.istio.io/v1/standings", "")
	first := w.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/standings?local=true", "")
	w.Want(http.StatusNotModified, "GET", "/apis/registry.istio.io/v1/standings?local=true", "", "If-None-Match: "+first.Header.Get("ETag"))
	w.Connect(1)
	w.Create("split")
	w.Watch("&statusEvents=true").Until("", "Programmed")
	second := first
	for second.Text == first.Text { // It may be the one of a moment ago.
		second = w.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/standings?local=true", "")
	}
	if !strings.Contains(second.Text, `"name":"split"`) {
		t.Errorf("%s", second.Text)
	}
}

// TestOneProxyOfAllReplicas checks that a request for one node asks the others for
// that node only, and that a replica which does not know it does not count as one
// that does not answer.
func TestOneProxyOfAllReplicas(t *testing.T) {
	mem := memory.New()
	far, further := servertest.StartReplica(t, mem), servertest.StartReplica(t, mem)
	asked := make(chan string, 10)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, far.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer between.Close()
	known := &servertest.Register{Known: map[string]string{"far": between.URL, "further": further.URL}}
	here := servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = known })
	for _, w := range []*servertest.World{here, far, further} {
		w.Want(http.StatusOK, "GET", "/debug/problems?local=true", "")
	}
	one := far.Connect(1)
	far.Connect(2)
	path := "/apis/registry.istio.io/v1/proxies/" + one.Node
	got := here.Want(http.StatusOK, "GET", path, "")
	if strings.Count(got.Text, `"node"`) != 1 || !strings.Contains(got.Text, one.Node) || got.Header.Get("Warning") != "" {
		t.Errorf("%s\n%s", got.Header.Get("Warning"), got.Text)
	}
	if at := <-asked; at != path {
		t.Errorf("asked for %s, want %s", at, path)
	}
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	known.Mu.Lock()
	known.Known["broken"] = broken.URL
	known.Mu.Unlock()
	got = here.Want(http.StatusOK, "GET", path, "")
	if warning := got.Header.Get("Warning"); !strings.Contains(warning, "replica broken does not answer") {
		t.Errorf("warned of %q", warning)
	}
	here.Want(http.StatusNotFound, "GET", path+"x", "")
}

// TestFreshStatus checks that a fresh status includes no proxy that left before the
// request, at this replica or another one.
func TestFreshStatus(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	far := servertest.StartReplica(t, mem)
	here := servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = &servertest.Register{Known: map[string]string{"far": far.URL}} })
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	here.Create("split")
	for _, w := range []*servertest.World{here, far} {
		w.Want(http.StatusOK, "GET", "/debug/problems", "")
	}
	here.Want(http.StatusBadRequest, "GET", servertest.RulesPath+"/split?freshStatus=yes", "")
	seen := here.Watch("&statusEvents=true")
	for i, w := range []*servertest.World{here, far, here, far} {
		p := w.Connect(i)
		p.Refuse(discovery.RouteType, "half a request")
		made := here.Put("split", 10+i)
		seen.Until(made.Metadata.ResourceVersion, "Rejected")
		p.Leave()
		now := here.Want(http.StatusOK, "GET", servertest.RulesPath+"/split?freshStatus=true", "").Text
		if s := servertest.StatusIn(t, []byte(now)); s.Reason() != "NoProxies" {
			t.Errorf("after it has left: %+v", s)
		}
	}
}

// TestMissingReplica checks that the proxies of a missing replica count while it
// answers. One that does not holds up nobody, and is named. A replica that is itself
// cut off says so.
func TestMissingReplica(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	far := servertest.StartReplica(t, mem)
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	known := &servertest.Register{Known: map[string]string{"far": far.URL}, Missing: map[string]time.Time{"far": since}}
	here, there, seen := oneProxyEach(t, mem, known, far)
	rule := here.Create("split")
	if s := seen.Until(rule.Metadata.ResourceVersion, "Programmed"); s.Programmed.Proxies != 2 {
		t.Errorf("with one that answers: %+v", s)
	}
	proxies := here.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if warned := proxies.Header.Get("Warning"); !strings.Contains(warned, "far is cut off from the store since 05:06:07") || !strings.Contains(proxies.Text, there.Node) {
		t.Errorf("warned of %q: %s", warned, proxies.Text)
	}

	known.Mu.Lock()
	known.Known["far"] = unanswered(t)
	known.Mu.Unlock()
	s := seen.Until(rule.Metadata.ResourceVersion, "Programmed")
	if c := s.Condition("Programmed"); s.Programmed.Proxies != 1 || !strings.Contains(c.Message, "far is missing since 05:06:07, and did not leave: its proxies do not count") {
		t.Errorf("missing: %+v", s)
	}
	known.Leave("far")
	if s = seen.Until(rule.Metadata.ResourceVersion, "Programmed"); strings.Contains(s.Condition("Programmed").Message, "far") {
		t.Errorf("it has left: %+v", s)
	}

	known.Mu.Lock()
	known.CutSince = since
	known.Mu.Unlock()
	s = seen.Until(rule.Metadata.ResourceVersion, "Unknown")
	if c := s.Condition("Programmed"); !strings.Contains(c.Message, "this replica is cut off from the store since 05:06:07") {
		t.Errorf("cut off: %+v", c)
	}
	proxies = here.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if warned := proxies.Header.Get("Warning"); !strings.Contains(warned, "this replica is cut off") {
		t.Errorf("warned of %q", warned)
	}
}

// TestAnotherReplicaAnswers checks that if another replica is reached at an
// address, its proxies are not reported as those of the first.
func TestAnotherReplicaAnswers(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	known := &servertest.Register{Known: map[string]string{}}
	here := servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = known })
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	here.Want(http.StatusOK, "GET", "/debug/problems", "")
	one := here.Connect(1)
	known.Mu.Lock()
	known.Known["far"] = here.URL // such as 127.0.0.1:8080 on each machine
	known.Mu.Unlock()
	rule := here.Create("split")
	s := here.Watch("&statusEvents=true").Until(rule.Metadata.ResourceVersion, "Unknown")
	if c := s.Condition("Programmed"); !strings.Contains(c.Message, "replica far does not answer") || s.Programmed.Proxies != 1 {
		t.Errorf("%+v of %+v", c, s)
	}
	proxies := here.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if strings.Count(proxies.Text, one.Node) != 1 || !strings.Contains(proxies.Header.Get("Warning"), "far does not answer") {
		t.Errorf("%s %s", proxies.Header.Get("Warning"), proxies.Text)
	}
	answer := here.Want(http.StatusBadRequest, "GET", "/debug/problems?local=true", "", "Pilot-Replica: far")
	if !strings.Contains(answer.Text, "this is replica here, and not far") {
		t.Errorf("%s", answer.Text)
	}
}

// unanswered returns a URL where nothing listens.
func unanswered(t *testing.T) string {
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	return broken.URL
}

// TestFreshStatusKnowsEarlierWrites checks that a fresh status follows from everything that
// was written before, also from other objects: one that hides the object, or hid it.
func TestFreshStatusKnowsEarlierWrites(t *testing.T) {
	w := servertest.Followed(t)
	rule := func(name string, precedence int) string {
		return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":"default"},
			"spec":{"destination":{"service":"web.example"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}}`, name, precedence)
	}
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries",
		`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"web","namespace":"default"},"spec":{"hosts":["web.example"],
		"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC","endpoints":[{"address":"10.0.0.1","labels":{"version":"v1"}}]}}`, servertest.AsJSON)
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, rule("low", 1), servertest.AsJSON)
	for range 25 {
		w.Want(http.StatusCreated, "POST", servertest.RulesPath, rule("high", 2), servertest.AsJSON)
		if text := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/low?freshStatus=true", "").Text; !strings.Contains(text, `"type":"Accepted","status":"False"`) {
			t.Fatalf("behind a rule that hides it: %s", text[strings.Index(text, `"status"`):])
		}
		w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/high", "")
		if text := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/low?freshStatus=true", "").Text; !strings.Contains(text, `"type":"Accepted","status":"True"`) {
			t.Fatalf("without a rule that hides it: %s", text[strings.Index(text, `"status"`):])
		}
	}
}
