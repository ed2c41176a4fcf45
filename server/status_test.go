package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// status has the fields of an object's status that tests read.
type status struct {
	Programmed struct{ Proxies, Running int }
	Conditions []metav1.Condition
}

func (s status) condition(kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// reason returns why the object is programmed or not.
func (s status) reason() string { return s.condition("Programmed").Reason }

func statusIn(t *testing.T, object []byte) status {
	t.Helper()
	var o struct{ Status *status }
	if err := yaml.Unmarshal(object, &o); err != nil || o.Status == nil {
		t.Fatalf("no status: %v\n%s", err, object)
	}
	return *o.Status
}

// withReviews returns a server with the service, whose proxies are simulated.
func withReviews(t *testing.T) *world {
	t.Helper()
	w := followed(t)
	w.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, asYAML)
	w.want(http.StatusOK, "GET", "/debug/problems", "")
	return w
}

func (w *world) connect(n int) *simulated.Proxy {
	w.Helper()
	p, err := simulated.Connect(w.discovery, simulated.Node(n))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Leave)
	return p
}

// until reads events until one has that resourceVersion (or any, for "") and that
// reason of Programmed.
func (w *watching) until(resourceVersion, reason string) status {
	w.t.Helper()
	for {
		f, ok := w.next()
		if !ok {
			w.t.Fatalf("the watch ended before %s was %s: %v", resourceVersion, reason, w.lines.Err())
		}
		var o object
		if err := json.Unmarshal(f.Object, &o); err != nil {
			w.t.Fatal(err)
		}
		s := statusIn(w.t, f.Object)
		if (resourceVersion == "" || o.Metadata.ResourceVersion == resourceVersion) && s.reason() == reason {
			return s
		}
	}
}

// TestStatusFollowsTheProxies checks that an object shows how many proxies run it,
// in a watch and in every form of a read.
func TestStatusFollowsTheProxies(t *testing.T) {
	outside.Slow(t)
	w := withReviews(t)
	fast, slow := w.connect(1), w.connect(2)
	seen := w.watch("&statusEvents=true")

	made := w.create("split")
	all := seen.until(made.Metadata.ResourceVersion, "Programmed")
	if all.Programmed.Proxies != 2 || all.Programmed.Running != 2 {
		t.Errorf("programmed: %+v, want 2 of 2", all.Programmed)
	}
	for _, kind := range []string{"Accepted", "ResolvedRefs", "Programmed"} {
		if c := all.condition(kind); c.Status != metav1.ConditionTrue || c.ObservedGeneration != 1 || c.LastTransitionTime.IsZero() {
			t.Errorf("%+v", c)
		}
	}

	slow.Hold()
	changed := w.put("split", 50)
	half := seen.until(changed.Metadata.ResourceVersion, "Pending")
	for half.Programmed.Running == 0 { // Neither has answered yet, or it is not published.
		half = seen.until(changed.Metadata.ResourceVersion, "Pending")
	}
	if half.Programmed.Proxies != 2 || half.condition("Programmed").Message != "1 of 2 proxies run it" {
		t.Errorf("with a slow one: %+v", half)
	}
	for name, read := range map[string]string{
		"get":       w.want(http.StatusOK, "GET", rulesPath+"/split", "").text,
		"yaml":      w.want(http.StatusOK, "GET", rulesPath+"/split", "", "Accept: application/yaml").text,
		"list":      firstItem(t, w.want(http.StatusOK, "GET", rulesPath, "").text),
		"yaml list": firstItem(t, w.want(http.StatusOK, "GET", allRules, "", "Accept: application/yaml").text),
	} {
		if got := statusIn(t, []byte(read)); got.Programmed != half.Programmed || got.reason() != "Pending" {
			t.Errorf("%s: %+v", name, got)
		}
	}

	slow.Accept()
	if healed := seen.until(changed.Metadata.ResourceVersion, "Programmed"); healed.Programmed.Running != 2 {
		t.Errorf("at the end: %+v", healed.Programmed)
	}
	fast.Leave()
	slow.Leave()
	if alone := seen.until(changed.Metadata.ResourceVersion, "NoProxies"); alone.Programmed.Proxies != 0 {
		t.Errorf("after all have left: %+v", alone.Programmed)
	}
}

func firstItem(t *testing.T, list string) string {
	t.Helper()
	var all struct{ Items []json.RawMessage }
	text, err := yaml.YAMLToJSON([]byte(list))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all.Items) == 0 {
		t.Fatalf("no items: %v\n%s", err, list)
	}
	return string(all.Items[0])
}

// TestStatusOfARefusal checks that the refused object says who refuses it and why,
// that no other object does, and that a better one clears it.
func TestStatusOfARefusal(t *testing.T) {
	w := withReviews(t)
	w.create("innocent")
	w.want(http.StatusOK, "DELETE", rulesPath+"/innocent", "")
	p := w.connect(1)
	w.connect(2)
	seen := w.watch("&statusEvents=true")
	made := w.create("split")
	seen.until(made.Metadata.ResourceVersion, "Programmed")

	p.Refuse(discovery.RouteType, "no such thing as half a request\x1b[2J\u009b31m\u202e\xff")
	bad := w.put("split", 50)
	refused := seen.until(bad.Metadata.ResourceVersion, "Rejected")
	c := refused.condition("Programmed")
	if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, p.Node) || !strings.Contains(c.Message, `half a request\x1b[2J\u009b31m\u202e`) {
		t.Errorf("%+v", c)
	}
	other := w.want(http.StatusOK, "GET", "/apis/networking.istio.io/v1/namespaces/default/serviceentries/reviews", "")
	if s := statusIn(t, []byte(other.text)); s.reason() == "Rejected" {
		t.Errorf("the service is to blame as well: %+v", s)
	}

	p.Accept()
	good := w.put("split", 70)
	healed := seen.until(good.Metadata.ResourceVersion, "Programmed")
	if healed.Programmed.Running != 2 {
		t.Errorf("healed: %+v", healed.Programmed)
	}
}

// TestStatusBesideARefusal checks that a proxy which refuses one rule of a route
// table runs every other one.
func TestStatusBesideARefusal(t *testing.T) {
	outside.Slow(t)
	w := withReviews(t)
	w.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", strings.ReplaceAll(simulated.Reviews, "reviews", "ratings"), asYAML)
	seen := w.watch("&statusEvents=true")
	p := w.connect(1)
	made := w.create("split")
	seen.until(made.Metadata.ResourceVersion, "Programmed")

	p.RefuseContaining(discovery.RouteType, "/poison", "half a request")
	bad := w.want(http.StatusCreated, "POST", rulesPath, `apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: poison}
spec:
  destination: {name: ratings}
  rewrite: {uri: /poison}
`, asYAML).object(t)
	if s := seen.until(bad.Metadata.ResourceVersion, "Rejected"); s.Programmed.Running != 0 {
		t.Errorf("refused: %+v", s)
	}
	changed := w.put("split", 50)
	if s := seen.until(changed.Metadata.ResourceVersion, "Programmed"); s.Programmed.Running != 1 {
		t.Errorf("beside it: %+v", s)
	}
	still := w.want(http.StatusOK, "GET", rulesPath+"/poison", "").text
	if s := statusIn(t, []byte(still)); s.reason() != "Rejected" {
		t.Errorf("the refused one: %+v", s)
	}
}

// TestStatusOfProblems checks the conditions for what cannot be honoured and for
// missing references.
func TestStatusOfProblems(t *testing.T) {
	w := followed(t)
	seen := w.watch("&statusEvents=true")
	made := w.create("nowhere")
	s := seen.until(made.Metadata.ResourceVersion, "UnknownHost")
	for _, kind := range []string{"Accepted", "ResolvedRefs", "Programmed"} {
		if c := s.condition(kind); c.Status != metav1.ConditionFalse || c.Reason != "UnknownHost" || c.Message == "" {
			t.Errorf("%+v", c)
		}
	}
}

// TestWatchWithoutStatuses checks that a client which wants no statuses receives
// changes only.
func TestWatchWithoutStatuses(t *testing.T) {
	w := withReviews(t)
	p := w.connect(1)
	plain, seen := w.watch(""), w.watch("&statusEvents=true")
	first := w.create("split")
	seen.until(first.Metadata.ResourceVersion, "Programmed")
	p.Hold()
	second := w.put("split", 50)
	p.Accept()
	seen.until(second.Metadata.ResourceVersion, "Programmed")
	w.delete("split")
	plain.want("ADDED split", "MODIFIED split", "DELETED split")
}

// TestWhatIsSentBackAsStatusIsDropped checks that a status is not stored, and that
// an object read with its status can be written.
func TestWhatIsSentBackAsStatusIsDropped(t *testing.T) {
	w := withReviews(t)
	w.create("split")
	got := w.want(http.StatusOK, "GET", rulesPath+"/split", "").text
	lie := strings.Replace(got, `"status":{`, `"status":{"mine":true,`, 1)
	if lie == got {
		t.Fatalf("no status in %s", got)
	}
	lie = strings.Replace(lie, `"weight":100`, `"weight":90`, 1)
	lie = strings.Replace(lie, `"weight":0`, `"weight":10`, 1)
	w.want(http.StatusOK, "PUT", rulesPath+"/split", lie, asJSON)
	w.want(http.StatusOK, "PATCH", rulesPath+"/split", `{"status":{"mine":true},"spec":{"precedence":3}}`, "Content-Type: application/merge-patch+json")
	w.want(http.StatusOK, "PATCH", rulesPath+"/split", `[{"op":"add","path":"/status","value":{"mine":true}}]`, "Content-Type: application/json-patch+json")
	after := w.want(http.StatusOK, "GET", rulesPath+"/split", "")
	if strings.Contains(after.text, "mine") || !strings.Contains(after.text, `"weight":90`) || !strings.Contains(after.text, `"precedence":3`) {
		t.Errorf("after the writes: %s", after.text)
	}
	stored, err := w.store.Get(t.Context(), schema.Key{Kind: "RouteRule", Namespace: "default", Name: "split"}, store.ReadOptions{})
	if err != nil || strings.Contains(string(stored.JSON()), "status") {
		t.Errorf("stored: %v, %s", err, stored.JSON())
	}
	if g := after.object(t).Metadata.Generation; g != 3 {
		t.Errorf("generation %d, want 3: the last patch changed nothing", g)
	}
}

// TestDryRunTellsTheStatusOfWhatIsStored checks that a diff with a dry run shows
// only what would change.
func TestDryRunTellsTheStatusOfWhatIsStored(t *testing.T) {
	w := withReviews(t)
	w.connect(1)
	seen := w.watch("&statusEvents=true")
	w.create("split")
	seen.until("", "Programmed")
	would := w.want(http.StatusOK, "PUT", rulesPath+"/split?dryRun=All", rule("split", 30), asYAML)
	if s := statusIn(t, []byte(would.text)); s.reason() != "Programmed" {
		t.Errorf("%+v", s)
	}
}

// TestKubectlWaits checks that kubectl wait ends when every proxy runs the rule,
// and not before.
func TestKubectlWaits(t *testing.T) {
	kubectl := outside.Tool(t, "kubectl")
	w := withReviews(t)
	p := w.connect(1)
	p.Hold()
	w.create("split")
	seen := w.watch("&statusEvents=true")
	seen.until("", "Pending")
	run := func(timeout string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), kubectl, "-s", w.url, "wait", "--for=condition=Programmed", "routerule/split", "--timeout="+timeout)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		return cmd.CombinedOutput()
	}
	if out, err := run("0s"); err == nil {
		t.Errorf("kubectl waits for nothing: %s", out)
	}
	type result struct {
		out []byte
		err error
	}
	waited := make(chan result, 1)
	go func() { out, err := run("60s"); waited <- result{out, err} }()
	p.Accept()
	if r := <-waited; r.err != nil || !strings.Contains(string(r.out), "condition met") {
		t.Errorf("%v: %s", r.err, r.out)
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "-s", w.url, "get", "routerules")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(`PROGRAMMED +AGE\nsplit .* 1/1 `).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestOwnClientKnowsNoStatuses checks that batches of our own watch are changes of
// the store.
func TestOwnClientKnowsNoStatuses(t *testing.T) {
	w := withReviews(t)
	p := w.connect(1)
	c, err := client.New(w.url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := schema.KindByName("RouteRule")
	from, err := c.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := c.Watch(t.Context(), store.Scope{Kind: kind}, from)
	if err != nil {
		t.Fatal(err)
	}
	seen := w.watch("&statusEvents=true")
	p.Hold()
	w.create("split")
	seen.until("", "Pending")
	p.Accept()
	seen.until("", "Programmed")
	w.delete("split")
	var got []store.EventType
	for len(got) == 0 || got[len(got)-1] != store.Deleted {
		batch, ok := <-watcher.Batches()
		if !ok {
			t.Fatal(watcher.Err())
		}
		for _, e := range batch.Events {
			got = append(got, e.Type)
			if strings.Contains(string(e.Object.JSON()), `"status"`) {
				t.Errorf("%s", e.Object.JSON())
			}
		}
	}
	if len(got) != 2 || got[0] != store.Added {
		t.Errorf("told %v, want ADDED and DELETED", got)
	}
}

// TestStatusOfAMissingSecret checks that a Gateway that names a missing Secret says
// so.
func TestStatusOfAMissingSecret(t *testing.T) {
	w := followed(t)
	seen := w.watch("&statusEvents=true")
	const gateways, asJSON = "/apis/networking.istio.io/v1/namespaces/default/gateways", "Content-Type: application/json"
	w.want(http.StatusCreated, "POST", gateways, edge, asJSON)
	w.want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/virtualservices", bound, asJSON)
	later := w.create("nowhere")
	seen.until(later.Metadata.ResourceVersion, "UnknownHost")
	s := statusIn(t, []byte(w.want(http.StatusOK, "GET", gateways+"/edge", "").text))
	if c := s.condition("ResolvedRefs"); c.Status != metav1.ConditionFalse || c.Reason != "TLSUnmet" || !strings.Contains(c.Message, "no Secret default/a") {
		t.Errorf("%+v", c)
	}
}

// TestStatusOfWhatIsWithheld checks that an object over the budget is not accepted,
// with the numbers in the condition.
func TestStatusOfWhatIsWithheld(t *testing.T) {
	mem := memory.New()
	view := cache.New(mem, cache.Options{Log: slog.New(slog.DiscardHandler)})
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 3}
	w := replicaOf(t, mem, view, discovery.Options{Source: view, CheckPatience: time.Minute, Settings: settings})
	const entries = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
	seen := w.follow(entries + "?watch=true&statusEvents=true")
	w.want(http.StatusCreated, "POST", entries, withheldEntry, asYAML)
	accepted := seen.until("", "OverBudget").condition("Accepted")
	if accepted.Status != metav1.ConditionFalse || accepted.Reason != "OverBudget" || !strings.Contains(accepted.Message, "2 hosts × 1 ports × 10 parts (8, one for each of 2 endpoints) = 20 parts") {
		t.Errorf("%+v", accepted)
	}
}

const withheldEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: large}
spec:
  hosts: [a.example, b.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1}, {address: 10.0.0.2}]
`
