package status_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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

// TestStatusFollowsTheProxies checks that an object shows how many proxies run it,
// in a watch and in every form of a read.
func TestStatusFollowsTheProxies(t *testing.T) {
	outside.Slow(t)
	w := servertest.WithReviews(t)
	fast, slow := w.Connect(1), w.Connect(2)
	seen := w.Watch("&statusEvents=true")

	made := w.Create("split")
	all := seen.Until(made.Metadata.ResourceVersion, "Programmed")
	if all.Programmed.Proxies != 2 || all.Programmed.Running != 2 {
		t.Errorf("programmed: %+v, want 2 of 2", all.Programmed)
	}
	for _, kind := range []string{"Accepted", "ResolvedRefs", "Programmed"} {
		if c := all.Condition(kind); c.Status != metav1.ConditionTrue || c.ObservedGeneration != 1 || c.LastTransitionTime.IsZero() {
			t.Errorf("%+v", c)
		}
	}

	slow.Hold()
	changed := w.Put("split", 50)
	half := seen.Until(changed.Metadata.ResourceVersion, "Pending")
	for half.Programmed.Running == 0 { // Neither has answered yet, or it is not published.
		half = seen.Until(changed.Metadata.ResourceVersion, "Pending")
	}
	if half.Programmed.Proxies != 2 || half.Condition("Programmed").Message != "1 of 2 proxies run it" {
		t.Errorf("with a slow one: %+v", half)
	}
	for name, read := range map[string]string{
		"get":       w.Want(http.StatusOK, "GET", servertest.RulesPath+"/split", "").Text,
		"yaml":      w.Want(http.StatusOK, "GET", servertest.RulesPath+"/split", "", "Accept: application/yaml").Text,
		"list":      firstItem(t, w.Want(http.StatusOK, "GET", servertest.RulesPath, "").Text),
		"yaml list": firstItem(t, w.Want(http.StatusOK, "GET", servertest.AllRules, "", "Accept: application/yaml").Text),
	} {
		if got := servertest.StatusIn(t, []byte(read)); got.Programmed != half.Programmed || got.Reason() != "Pending" {
			t.Errorf("%s: %+v", name, got)
		}
	}

	slow.Accept()
	if healed := seen.Until(changed.Metadata.ResourceVersion, "Programmed"); healed.Programmed.Running != 2 {
		t.Errorf("at the end: %+v", healed.Programmed)
	}
	fast.Leave()
	slow.Leave()
	if alone := seen.Until(changed.Metadata.ResourceVersion, "NoProxies"); alone.Programmed.Proxies != 0 {
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
	w := servertest.WithReviews(t)
	w.Create("innocent")
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/innocent", "")
	p := w.Connect(1)
	w.Connect(2)
	seen := w.Watch("&statusEvents=true")
	made := w.Create("split")
	seen.Until(made.Metadata.ResourceVersion, "Programmed")

	p.Refuse(discovery.RouteType, "no such thing as half a request\x1b[2J\u009b31m\u202e\xff")
	bad := w.Put("split", 50)
	refused := seen.Until(bad.Metadata.ResourceVersion, "Rejected")
	c := refused.Condition("Programmed")
	if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, p.Node) || !strings.Contains(c.Message, `half a request\x1b[2J\u009b31m\u202e`) {
		t.Errorf("%+v", c)
	}
	other := w.Want(http.StatusOK, "GET", "/apis/networking.istio.io/v1/namespaces/default/serviceentries/reviews", "")
	if s := servertest.StatusIn(t, []byte(other.Text)); s.Reason() == "Rejected" {
		t.Errorf("the service is to blame as well: %+v", s)
	}

	p.Accept()
	good := w.Put("split", 70)
	healed := seen.Until(good.Metadata.ResourceVersion, "Programmed")
	if healed.Programmed.Running != 2 {
		t.Errorf("healed: %+v", healed.Programmed)
	}
}

// TestStatusBesideARefusal checks that a proxy which refuses one rule of a route
// table runs every other one.
func TestStatusBesideARefusal(t *testing.T) {
	outside.Slow(t)
	w := servertest.WithReviews(t)
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", strings.ReplaceAll(simulated.Reviews, "reviews", "ratings"), servertest.AsYAML)
	seen := w.Watch("&statusEvents=true")
	p := w.Connect(1)
	made := w.Create("split")
	seen.Until(made.Metadata.ResourceVersion, "Programmed")

	p.RefuseContaining(discovery.RouteType, "/poison", "half a request")
	bad := w.Want(http.StatusCreated, "POST", servertest.RulesPath, `apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: poison}
spec:
  destination: {name: ratings}
  rewrite: {uri: /poison}
`, servertest.AsYAML).Object(t)
	if s := seen.Until(bad.Metadata.ResourceVersion, "Rejected"); s.Programmed.Running != 0 {
		t.Errorf("refused: %+v", s)
	}
	changed := w.Put("split", 50)
	if s := seen.Until(changed.Metadata.ResourceVersion, "Programmed"); s.Programmed.Running != 1 {
		t.Errorf("beside it: %+v", s)
	}
	still := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/poison", "").Text
	if s := servertest.StatusIn(t, []byte(still)); s.Reason() != "Rejected" {
		t.Errorf("the refused one: %+v", s)
	}
}

// TestStatusOfProblems checks the conditions for what cannot be honoured and for
// missing references.
func TestStatusOfProblems(t *testing.T) {
	w := servertest.Followed(t)
	seen := w.Watch("&statusEvents=true")
	made := w.Create("nowhere")
	s := seen.Until(made.Metadata.ResourceVersion, "UnknownHost")
	for _, kind := range []string{"Accepted", "ResolvedRefs", "Programmed"} {
		if c := s.Condition(kind); c.Status != metav1.ConditionFalse || c.Reason != "UnknownHost" || c.Message == "" {
			t.Errorf("%+v", c)
		}
	}
}

// TestWatchWithoutStatuses checks that a client which wants no statuses receives
// changes only.
func TestWatchWithoutStatuses(t *testing.T) {
	w := servertest.WithReviews(t)
	p := w.Connect(1)
	plain, seen := w.Watch(""), w.Watch("&statusEvents=true")
	first := w.Create("split")
	seen.Until(first.Metadata.ResourceVersion, "Programmed")
	p.Hold()
	second := w.Put("split", 50)
	p.Accept()
	seen.Until(second.Metadata.ResourceVersion, "Programmed")
	w.Delete("split")
	plain.Want("ADDED split", "MODIFIED split", "DELETED split")
}

// TestWhatIsSentBackAsStatusIsDropped checks that a status is not stored, and that
// an object read with its status can be written.
func TestWhatIsSentBackAsStatusIsDropped(t *testing.T) {
	w := servertest.WithReviews(t)
	w.Create("split")
	got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/split", "").Text
	lie := strings.Replace(got, `"status":{`, `"status":{"mine":true,`, 1)
	if lie == got {
		t.Fatalf("no status in %s", got)
	}
	lie = strings.Replace(lie, `"weight":100`, `"weight":90`, 1)
	lie = strings.Replace(lie, `"weight":0`, `"weight":10`, 1)
	w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/split", lie, servertest.AsJSON)
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/split", `{"status":{"mine":true},"spec":{"precedence":3}}`, "Content-Type: application/merge-patch+json")
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/split", `[{"op":"add","path":"/status","value":{"mine":true}}]`, "Content-Type: application/json-patch+json")
	after := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/split", "")
	if strings.Contains(after.Text, "mine") || !strings.Contains(after.Text, `"weight":90`) || !strings.Contains(after.Text, `"precedence":3`) {
		t.Errorf("after the writes: %s", after.Text)
	}
	stored, err := w.Store.Get(t.Context(), schema.Key{Kind: "RouteRule", Namespace: "default", Name: "split"}, store.ReadOptions{})
	if err != nil || strings.Contains(string(stored.JSON()), "status") {
		t.Errorf("stored: %v, %s", err, stored.JSON())
	}
	if g := after.Object(t).Metadata.Generation; g != 3 {
		t.Errorf("generation %d, want 3: the last patch changed nothing", g)
	}
}

// TestDryRunTellsTheStatusOfWhatIsStored checks that a diff with a dry run shows
// only what would change.
func TestDryRunTellsTheStatusOfWhatIsStored(t *testing.T) {
	w := servertest.WithReviews(t)
	w.Connect(1)
	seen := w.Watch("&statusEvents=true")
	w.Create("split")
	seen.Until("", "Programmed")
	would := w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/split?dryRun=All", servertest.Rule("split", 30), servertest.AsYAML)
	if s := servertest.StatusIn(t, []byte(would.Text)); s.Reason() != "Programmed" {
		t.Errorf("%+v", s)
	}
}

// TestKubectlWaits checks that kubectl wait ends when every proxy runs the rule,
// and not before.
func TestKubectlWaits(t *testing.T) {
	kubectl := outside.Tool(t, "kubectl")
	w := servertest.WithReviews(t)
	p := w.Connect(1)
	p.Hold()
	w.Create("split")
	seen := w.Watch("&statusEvents=true")
	seen.Until("", "Pending")
	run := func(timeout string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), kubectl, "-s", w.URL, "wait", "--for=condition=Programmed", "routerule/split", "--timeout="+timeout)
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
	cmd := exec.CommandContext(t.Context(), kubectl, "-s", w.URL, "get", "routerules")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(`PROGRAMMED +AGE\nsplit .* 1/1 `).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestOwnClientKnowsNoStatuses checks that batches of our own watch are changes of
// the store.
func TestOwnClientKnowsNoStatuses(t *testing.T) {
	w := servertest.WithReviews(t)
	p := w.Connect(1)
	c, err := client.New(w.URL, client.Options{})
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
	seen := w.Watch("&statusEvents=true")
	p.Hold()
	w.Create("split")
	seen.Until("", "Pending")
	p.Accept()
	seen.Until("", "Programmed")
	w.Delete("split")
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
	w := servertest.Followed(t)
	seen := w.Watch("&statusEvents=true")
	const gateways, asJSON = "/apis/networking.istio.io/v1/namespaces/default/gateways", "Content-Type: application/json"
	w.Want(http.StatusCreated, "POST", gateways, servertest.Edge, asJSON)
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/virtualservices", servertest.Bound, asJSON)
	later := w.Create("nowhere")
	seen.Until(later.Metadata.ResourceVersion, "UnknownHost")
	s := servertest.StatusIn(t, []byte(w.Want(http.StatusOK, "GET", gateways+"/edge", "").Text))
	if c := s.Condition("ResolvedRefs"); c.Status != metav1.ConditionFalse || c.Reason != "TLSUnmet" || !strings.Contains(c.Message, "no Secret default/a") {
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
	w := servertest.ReplicaOf(t, mem, view, discovery.Options{Source: view, CheckPatience: time.Minute, Settings: settings})
	const entries = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
	seen := w.Follow(entries + "?watch=true&statusEvents=true")
	w.Want(http.StatusCreated, "POST", entries, withheldEntry, servertest.AsYAML)
	accepted := seen.Until("", "OverBudget").Condition("Accepted")
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
