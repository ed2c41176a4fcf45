package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store/memory"
)

// selectable are objects for field selectors to find, by kind and name.
var selectable = []string{
	`{kind: RouteRule, apiVersion: config.istio.io/v1alpha2, metadata: {name: a}, spec: {destination: {name: reviews}}}`,
	`{kind: RouteRule, apiVersion: config.istio.io/v1alpha2, metadata: {name: b}, spec: {destination: {service: "*.example.com"}}}`,
	`{kind: DestinationPolicy, apiVersion: config.istio.io/v1alpha2, metadata: {name: a}, spec: {destination: {name: reviews}, loadBalancing: {name: RANDOM}}}`,
	`{kind: EgressRule, apiVersion: config.istio.io/v1alpha2, metadata: {name: a}, spec: {destination: {service: "*.example.com"}, ports: [{port: 80, protocol: http}]}}`,
	`{kind: IngressRule, apiVersion: config.istio.io/v1alpha2, metadata: {name: a}, spec: {destination: {name: reviews}, destinationPort: 80, tlsSecret: web}}`,
	`{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {hosts: [reviews, ratings], http: [{route: [{destination: {host: details}}]}]}}`,
	`{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: b}, spec: {hosts: [ratings], gateways: [front], tcp: [{route: [{destination: {host: reviews}}]}]}}`,
	`{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {host: reviews}}`,
	`{kind: Gateway, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [shop.example.com], tls: {mode: SIMPLE, credentialName: web}}]}}`,
	`{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {hosts: [reviews], addresses: [192.0.2.1], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC}}`,
	`{kind: WorkloadEntry, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {address: 192.0.2.1}}`,
	`{kind: Sidecar, apiVersion: networking.istio.io/v1, metadata: {name: a}, spec: {egress: [{hosts: ["./*", "other/reviews"]}]}}`,
	`{kind: AuthorizationPolicy, apiVersion: security.istio.io/v1, metadata: {name: a}, spec: {action: DENY}}`,
	`{kind: RequestAuthentication, apiVersion: security.istio.io/v1, metadata: {name: a}, spec: {jwtRules: [{issuer: "https://a.example"}, {issuer: "https://b.example"}]}}`,
	`{kind: PeerAuthentication, apiVersion: security.istio.io/v1, metadata: {name: a}, spec: {mtls: {mode: STRICT}}}`,
}

func collection(t *testing.T, kind string) string {
	t.Helper()
	k, ok := schema.KindByName(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	return "/apis/" + k.APIVersion() + "/namespaces/default/" + k.Plural
}

func kindIn(text string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(text, "{kind: "), ",")
	return kind
}

// TestFieldSelectors checks for every field of every kind that it selects the
// objects with the value, and with != the others.
func TestFieldSelectors(t *testing.T) {
	w := servertest.Start(t)
	for _, text := range selectable {
		body, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w.Want(http.StatusCreated, "POST", collection(t, kindIn(text)), string(body), servertest.AsJSON)
	}
	tried := map[string]bool{}
	for _, c := range []struct {
		kind, selector string
		want           []string
	}{
		{"RouteRule", "spec.destination.name=reviews", []string{"a"}},
		{"RouteRule", "spec.destination.name=", []string{"b"}},
		{"RouteRule", "spec.destination.service!=*.example.com", []string{"a"}},
		{"RouteRule", "spec.destination.service=*.example.com,metadata.name=a", []string{}},
		{"DestinationPolicy", "spec.destination.name=reviews", []string{"a"}},
		{"DestinationPolicy", "spec.destination.service=reviews", []string{}},
		{"EgressRule", "spec.destination.service==*.example.com", []string{"a"}},
		{"EgressRule", "spec.destination.name!=", []string{}},
		{"IngressRule", "spec.destination.name=reviews,spec.tlsSecret=web", []string{"a"}},
		{"IngressRule", "spec.destination.service=", []string{"a"}},
		{"VirtualService", "spec.hosts=reviews", []string{"a"}},
		{"VirtualService", "spec.hosts=ratings", []string{"a", "b"}},
		{"VirtualService", "spec.hosts!=reviews", []string{"b"}},
		{"VirtualService", "spec.hosts=reviews,spec.hosts=ratings", []string{"a"}},
		{"VirtualService", "spec.gateways=mesh", []string{"a"}},
		{"VirtualService", "destination.host=reviews", []string{"b"}},
		{"DestinationRule", "spec.host=reviews,metadata.namespace=default", []string{"a"}},
		{"Gateway", "spec.servers.hosts=shop.example.com", []string{"a"}},
		{"Gateway", "spec.servers.tls.credentialName=other", []string{}},
		{"ServiceEntry", "spec.hosts=reviews", []string{"a"}},
		{"ServiceEntry", "spec.addresses=192.0.2.1", []string{"a"}},
		{"WorkloadEntry", "spec.address=192.0.2.1", []string{"a"}},
		{"Sidecar", "spec.egress.hosts=other/reviews", []string{"a"}},
		{"AuthorizationPolicy", "spec.action=DENY", []string{"a"}},
		{"PeerAuthentication", "spec.mtls.mode=STRICT", []string{"a"}},
		{"RequestAuthentication", "spec.jwtRules.issuer=https://b.example", []string{"a"}},
	} {
		for _, one := range strings.Split(c.selector, ",") {
			name, _, _ := strings.Cut(strings.ReplaceAll(one, "!", ""), "=")
			tried[c.kind+" "+name] = true
		}
		if got := names(w, collection(t, c.kind), "fieldSelector", c.selector); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: got %v, want %v", c.kind, c.selector, got, c.want)
		}
	}
	for _, k := range schema.Kinds() {
		for _, f := range schema.SelectableFields(k) {
			if !tried[k.Kind+" "+f.Name] && !strings.HasPrefix(f.Name, "metadata.") {
				t.Errorf("%s of %s is not tried", f.Name, k.Kind)
			}
		}
	}
}

// TestLabelSelectors checks all forms of a set-based selector.
func TestLabelSelectors(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a", `labels: {team: red, tier: "1"}`)
	w.Create("b", `labels: {team: blue, tier: "2"}`)
	w.Create("c")
	for selector, want := range map[string][]string{
		"team in (red, blue)":       {"a", "b"},
		"team notin (red)":          {"b", "c"},
		"team":                      {"a", "b"},
		"!team":                     {"c"},
		"team!=red":                 {"b", "c"},
		"team==red":                 {"a"},
		"tier>1":                    {"b"},
		"tier<2,team":               {"a"},
		"team in (red),tier in (2)": {},
	} {
		if got := names(w, servertest.RulesPath, "labelSelector", selector); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", selector, got, want)
		}
	}
}

func names(w *servertest.World, path, param, selector string) []string {
	w.Helper()
	var l servertest.Listed
	text := w.Want(http.StatusOK, "GET", path+"?"+url.Values{param: {selector}}.Encode(), "").Text
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		w.Fatalf("%v in %s", err, text)
	}
	return l.Names()
}

const ofReviews = "&fieldSelector=spec.destination.name%3Dreviews"

// other creates a rule for another destination.
func other(w *servertest.World, name string) servertest.Object {
	w.Helper()
	text := strings.Replace(servertest.Rule(name, 50), "name: reviews", "name: ratings", 1)
	return w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/"+name, text, servertest.AsYAML).Object(w.T)
}

// TestWatchFields checks that an object which moves into the selection is added,
// and one that moves out is deleted: in one stream, in a stream resumed at any
// place, and in one that begins with the state.
func TestWatchFields(t *testing.T) {
	w := servertest.Start(t)
	begin := w.Create("a")
	whole := w.Watch(ofReviews)
	out := other(w, "a")
	in := w.Put("a", 40)
	w.Create("b")
	other(w, "b")
	w.Delete("b") // Nobody who sees the selection knows of it.
	changed := w.Put("a", 30)
	w.Delete("a")
	w.Create("last")
	all := []string{"ADDED a", "DELETED a", "ADDED a", "ADDED b", "DELETED b", "MODIFIED a", "DELETED a", "ADDED last"}
	whole.Want(all...)
	for told, from := range map[int]servertest.Object{1: begin, 2: out, 3: in, 6: changed} {
		w.Watch(ofReviews + "&resourceVersion=" + from.Metadata.ResourceVersion).Want(all[told:]...)
	}
	w.Watch(ofReviews+servertest.StateFirst).Want("ADDED last", "BOOKMARK")
	other(w, "last")
	w.Watch(ofReviews + servertest.StateFirst).Want("BOOKMARK")
}

// TestMovedOut checks that an object that leaves the selection is shown as it was
// in it, at the revision of the change, so that clients can resume from there.
func TestMovedOut(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	watch := w.Watch(ofReviews)
	watch.Want("ADDED a")
	out := other(w, "a")
	f, _ := watch.Next()
	if !strings.Contains(string(f.Object), `"reviews"`) || !strings.Contains(string(f.Object), `"resourceVersion":"`+out.Metadata.ResourceVersion+`"`) {
		t.Errorf("got %s %s", f, f.Object)
	}
}

// TestBadSelectors checks that errors name the valid fields, and that the cost of
// selectors is bounded.
func TestBadSelectors(t *testing.T) {
	w := servertest.Start(t)
	values := "v0"
	for i := range 999 {
		values += fmt.Sprintf(",v%d", i+1)
	}
	for _, c := range []struct{ param, selector, says string }{
		{"fieldSelector", "spec.precedence=1", "metadata.name, metadata.namespace, spec.destination.name or spec.destination.service"},
		{"fieldSelector", "spec.hosts=reviews", "found \\\"spec.hosts\\\""},
		{"fieldSelector", "metadata.name", "can't understand"},
		{"fieldSelector", "metadata.name in (a)", "can't understand"},
		{"fieldSelector", `metadata.name=a\`, "invalid field selector"},
		{"fieldSelector", strings.Repeat("metadata.name!=a,", 101), "at most 100 requirements"},
		{"labelSelector", "a in (" + values + ",y)", "1000 values"},
		{"labelSelector", "a in (" + values + "),b", ""},
		{"labelSelector", "a in (", "labelSelector"},
		{"labelSelector", "-a=b", "labelSelector"},
		{"labelSelector", "a=" + strings.Repeat("x", 64), "labelSelector"},
		{"labelSelector", "a>b", "labelSelector"},
	} {
		for _, watch := range []string{"", "&watch=true&timeoutSeconds=1"} {
			got := w.Do("GET", servertest.RulesPath+"?"+url.Values{c.param: {c.selector}}.Encode()+watch, "")
			if good := c.says == ""; got.StatusCode != http.StatusBadRequest != good || !strings.Contains(got.Text, c.says) {
				t.Errorf("%s %.40s: %d %s", c.param, c.selector, got.StatusCode, got.Text)
			}
		}
	}
}

// TestSelectableFieldsAreDocumented compares the table of docs/api.md with the
// kinds.
func TestSelectableFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range schema.Kinds() {
		var fields []string
		for _, f := range schema.SelectableFields(k)[len(schema.SelectableFields(nil)):] {
			fields = append(fields, "`"+f.Name+"`")
		}
		if row := fmt.Sprintf("| %s | %s |\n", k.Kind, strings.Join(fields, ", ")); len(fields) > 0 && !strings.Contains(string(page), row) {
			t.Errorf("docs/api.md lacks the row\n%s", row)
		}
	}
}

// FuzzSelectors checks that any selector is used or refused.
func FuzzSelectors(f *testing.F) {
	f.Add("team in (red,blue)", "metadata.name!=a")
	f.Add("!x,y>1", `spec.destination.name=a\,b`)
	f.Fuzz(func(t *testing.T, labels, fields string) {
		query := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}}.Encode()
		got := httptest.NewRecorder()
		fuzzed().ServeHTTP(got, httptest.NewRequest("GET", "http://localhost"+servertest.RulesPath+"?"+query, nil))
		if got.Code != http.StatusOK && got.Code != http.StatusBadRequest {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// fuzzed is a server over a store with one object.
var fuzzed = sync.OnceValue(func() http.Handler {
	mem := memory.New()
	kind, _ := schema.KindByName("RouteRule")
	obj, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"team": "red"}}, json.RawMessage(`{"destination":{"name":"reviews"}}`))
	if err != nil {
		panic(err)
	}
	if _, err := mem.Create(context.Background(), obj); err != nil {
		panic(err)
	}
	return server.New(server.Options{Store: mem, Reads: mem}).Handler()
})
