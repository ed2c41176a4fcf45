package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/memory"
)

// register is the list of replicas as one of them sees it.
type register struct {
	mu      sync.Mutex
	others  map[string]string
	missing map[string]time.Time
	cutOff  time.Time // zero if it is not
}

func (r *register) Self() string { return "here" }

func (r *register) Others(context.Context) ([]replica.Replica, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []replica.Replica
	for name, at := range r.others {
		all = append(all, replica.Replica{Name: name, URL: at, Missing: r.missing[name]})
	}
	return all, nil
}

func (r *register) CutOff() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cutOff, !r.cutOff.IsZero()
}

func (r *register) leave(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.others, name)
}

// oneProxyEach returns two replicas with one proxy each that calls reviews: the
// replica, the other's proxy, and a watch of rules with their statuses.
func oneProxyEach(t *testing.T, mem *memory.Store, known *register, far *world) (here *world, there *simulated.Proxy, seen *watching) {
	t.Helper()
	here = startReplica(t, mem, func(o *server.Options) { o.Peers = known })
	here.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	for _, w := range []*world{here, far} {
		w.want(http.StatusOK, "GET", "/debug/problems", "")
	}
	here.connect(1)
	there = far.connect(2)
	return here, there, here.watch("&statusEvents=true")
}

// TestStatusOfAllReplicas checks that proxies of another replica and their refusals
// count, and that while a replica does not answer no object is reported as run by
// all.
func TestStatusOfAllReplicas(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	far := startReplica(t, mem)
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	known := &register{others: map[string]string{"far": far.url}}
	here, there, seen := oneProxyEach(t, mem, known, far)

	first := here.create("split")
	if s := seen.until(first.Metadata.ResourceVersion, "Programmed"); s.Programmed.Proxies != 2 {
		t.Errorf("of both: %+v", s)
	}
	there.Hold()
	second := here.put("split", 50)
	s := seen.until(second.Metadata.ResourceVersion, "Pending")
	for s.Programmed.Running != 1 {
		s = seen.until(second.Metadata.ResourceVersion, "Pending")
	}
	there.Accept()
	seen.until(second.Metadata.ResourceVersion, "Programmed")

	there.Refuse(discovery.RouteType, "half a request")
	third := here.put("split", 60)
	s = seen.until(third.Metadata.ResourceVersion, "Rejected")
	if c := s.condition("Programmed"); !strings.Contains(c.Message, there.Node) {
		t.Errorf("refused there: %+v", c)
	}
	there.Accept()
	fourth := here.put("split", 70)
	seen.until(fourth.Metadata.ResourceVersion, "Programmed")

	known.mu.Lock()
	known.others["silent"] = silent.URL
	known.mu.Unlock()
	s = seen.until(fourth.Metadata.ResourceVersion, "Unknown")
	if c := s.condition("Programmed"); c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "silent does not answer") || s.Programmed.Running != 2 {
		t.Errorf("with a silent one: %+v", s)
	}
	known.leave("silent")
	seen.until(fourth.Metadata.ResourceVersion, "Programmed")
}

// TestStandingsAreForReplicas checks that unchanged statuses are not sent again,
// and that only a replica's own can be requested.
func TestStandingsAreForReplicas(t *testing.T) {
	w := withReviews(t)
	w.want(http.StatusBadRequest, "GET", "/apis/registry.istio.io/v1/standings", "")
	first := w.want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/standings?local=true", "")
	w.want(http.StatusNotModified, "GET", "/apis/registry.istio.io/v1/standings?local=true", "", "If-None-Match: "+first.Header.Get("ETag"))
	w.connect(1)
	w.create("split")
	w.watch("&statusEvents=true").until("", "Programmed")
	second := first
	for second.text == first.text { // It may be the one of a moment ago.
		second = w.want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/standings?local=true", "")
	}
	if !strings.Contains(second.text, `"name":"split"`) {
		t.Errorf("%s", second.text)
	}
}

// TestOneProxyOfAllReplicas checks that a request for one node asks the others for
// that node only, and that a replica which does not know it does not count as one
// that does not answer.
func TestOneProxyOfAllReplicas(t *testing.T) {
	mem := memory.New()
	far, further := startReplica(t, mem), startReplica(t, mem)
	asked := make(chan string, 10)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, far.url+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer between.Close()
	known := &register{others: map[string]string{"far": between.URL, "further": further.url}}
	here := startReplica(t, mem, func(o *server.Options) { o.Peers = known })
	for _, w := range []*world{here, far, further} {
		w.want(http.StatusOK, "GET", "/debug/problems?local=true", "")
	}
	one := far.connect(1)
	far.connect(2)
	path := "/apis/registry.istio.io/v1/proxies/" + one.Node
	got := here.want(http.StatusOK, "GET", path, "")
	if strings.Count(got.text, `"node"`) != 1 || !strings.Contains(got.text, one.Node) || got.Header.Get("Warning") != "" {
		t.Errorf("%s\n%s", got.Header.Get("Warning"), got.text)
	}
	if at := <-asked; at != path {
		t.Errorf("asked for %s, want %s", at, path)
	}
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	known.mu.Lock()
	known.others["broken"] = broken.URL
	known.mu.Unlock()
	got = here.want(http.StatusOK, "GET", path, "")
	if warning := got.Header.Get("Warning"); !strings.Contains(warning, "replica broken does not answer") {
		t.Errorf("warned of %q", warning)
	}
	here.want(http.StatusNotFound, "GET", path+"x", "")
}

// TestFreshStatus checks that a fresh status includes no proxy that left before the
// request, at this replica or another one.
func TestFreshStatus(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	far := startReplica(t, mem)
	here := startReplica(t, mem, func(o *server.Options) { o.Peers = &register{others: map[string]string{"far": far.url}} })
	here.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	here.create("split")
	for _, w := range []*world{here, far} {
		w.want(http.StatusOK, "GET", "/debug/problems", "")
	}
	here.want(http.StatusBadRequest, "GET", rulesPath+"/split?freshStatus=yes", "")
	seen := here.watch("&statusEvents=true")
	for i, w := range []*world{here, far, here, far} {
		p := w.connect(i)
		p.Refuse(discovery.RouteType, "half a request")
		made := here.put("split", 10+i)
		seen.until(made.Metadata.ResourceVersion, "Rejected")
		p.Leave()
		now := here.want(http.StatusOK, "GET", rulesPath+"/split?freshStatus=true", "").text
		if s := statusIn(t, []byte(now)); s.reason() != "NoProxies" {
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
	far := startReplica(t, mem)
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	known := &register{others: map[string]string{"far": far.url}, missing: map[string]time.Time{"far": since}}
	here, there, seen := oneProxyEach(t, mem, known, far)
	rule := here.create("split")
	if s := seen.until(rule.Metadata.ResourceVersion, "Programmed"); s.Programmed.Proxies != 2 {
		t.Errorf("with one that answers: %+v", s)
	}
	proxies := here.want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if warned := proxies.Header.Get("Warning"); !strings.Contains(warned, "far is cut off from the store since 05:06:07") || !strings.Contains(proxies.text, there.Node) {
		t.Errorf("warned of %q: %s", warned, proxies.text)
	}

	known.mu.Lock()
	known.others["far"] = unanswered(t)
	known.mu.Unlock()
	s := seen.until(rule.Metadata.ResourceVersion, "Programmed")
	if c := s.condition("Programmed"); s.Programmed.Proxies != 1 || !strings.Contains(c.Message, "far is missing since 05:06:07, and did not leave: its proxies do not count") {
		t.Errorf("missing: %+v", s)
	}
	known.leave("far")
	if s = seen.until(rule.Metadata.ResourceVersion, "Programmed"); strings.Contains(s.condition("Programmed").Message, "far") {
		t.Errorf("it has left: %+v", s)
	}

	known.mu.Lock()
	known.cutOff = since
	known.mu.Unlock()
	s = seen.until(rule.Metadata.ResourceVersion, "Unknown")
	if c := s.condition("Programmed"); !strings.Contains(c.Message, "this replica is cut off from the store since 05:06:07") {
		t.Errorf("cut off: %+v", c)
	}
	proxies = here.want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if warned := proxies.Header.Get("Warning"); !strings.Contains(warned, "this replica is cut off") {
		t.Errorf("warned of %q", warned)
	}
}

// TestAnotherReplicaAnswers checks that if another replica is reached at an
// address, its proxies are not reported as those of the first.
func TestAnotherReplicaAnswers(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	known := &register{others: map[string]string{}}
	here := startReplica(t, mem, func(o *server.Options) { o.Peers = known })
	here.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	here.want(http.StatusOK, "GET", "/debug/problems", "")
	one := here.connect(1)
	known.mu.Lock()
	known.others["far"] = here.url // such as 127.0.0.1:8080 on each machine
	known.mu.Unlock()
	rule := here.create("split")
	s := here.watch("&statusEvents=true").until(rule.Metadata.ResourceVersion, "Unknown")
	if c := s.condition("Programmed"); !strings.Contains(c.Message, "replica far does not answer") || s.Programmed.Proxies != 1 {
		t.Errorf("%+v of %+v", c, s)
	}
	proxies := here.want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies", "")
	if strings.Count(proxies.text, one.Node) != 1 || !strings.Contains(proxies.Header.Get("Warning"), "far does not answer") {
		t.Errorf("%s %s", proxies.Header.Get("Warning"), proxies.text)
	}
	answer := here.want(http.StatusBadRequest, "GET", "/debug/problems?local=true", "", "Pilot-Replica: far")
	if !strings.Contains(answer.text, "this is replica here, and not far") {
		t.Errorf("%s", answer.text)
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
	w := followed(t)
	rule := func(name string, precedence int) string {
		return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":"default"},
			"spec":{"destination":{"service":"web.example"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}}`, name, precedence)
	}
	w.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries",
		`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"web","namespace":"default"},"spec":{"hosts":["web.example"],
		"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC","endpoints":[{"address":"10.0.0.1","labels":{"version":"v1"}}]}}`, asJSON)
	w.want(http.StatusCreated, "POST", rulesPath, rule("low", 1), asJSON)
	for range 25 {
		w.want(http.StatusCreated, "POST", rulesPath, rule("high", 2), asJSON)
		if text := w.want(http.StatusOK, "GET", rulesPath+"/low?freshStatus=true", "").text; !strings.Contains(text, `"type":"Accepted","status":"False"`) {
			t.Fatalf("behind a rule that hides it: %s", text[strings.Index(text, `"status"`):])
		}
		w.want(http.StatusOK, "DELETE", rulesPath+"/high", "")
		if text := w.want(http.StatusOK, "GET", rulesPath+"/low?freshStatus=true", "").text; !strings.Contains(text, `"type":"Accepted","status":"True"`) {
			t.Fatalf("without a rule that hides it: %s", text[strings.Index(text, `"status"`):])
		}
	}
}
