package reach_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/reach"
	"github.com/pilot-api/pilot-api/schema"
)

// service is a service with one instance. tls is set for one that takes mutual TLS.
func service(namespace, name, address string, tls bool, more string) string {
	label := ""
	if tls {
		label = ", security.istio.io/tlsMode: istio"
	}
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  hosts: [%[2]s.%[1]s.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  endpoints: [{address: %[3]s, serviceAccount: %[2]s, labels: {app: %[2]s%[4]s}}]
  %[5]s
---
`, namespace, name, address, label, more)
}

func object(kind, namespace, name, spec string) string {
	group := "security.istio.io"
	if kind == "DestinationRule" || kind == "Sidecar" {
		group = "networking.istio.io"
	}
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: %s\n---\n", group, kind, name, namespace, spec)
}

const (
	strict  = "{mtls: {mode: STRICT}}"
	nothing = "{}"
)

func snapshotOf(t testing.TB, text string) *mesh.Snapshot {
	t.Helper()
	settings := mesh.DefaultSettings()
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: "/a.crt", KeyFile: "/a.key", CAFile: "/ca.crt"}
	var objects []*schema.Object
	for _, doc := range schema.Split([]byte(strings.TrimSuffix(text, "---\n")), "objects") {
		some, problems, err := doc.Objects(t.Context(), "shop")
		if err := errors.Join(err, problems.Err()); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, some...)
	}
	return mesh.NewSnapshot(7, settings, objects)
}

func ask(t testing.TB, text string, opts reach.Options) (*explain.Reach, error) {
	t.Helper()
	s := snapshotOf(t, text)
	c := compile.NewCompiler()
	c.Advance(s)
	return reach.Find(t.Context(), c, s, opts)
}

// rowFor returns the answer for one caller to reviews, as one line.
func rowFor(t *testing.T, text, caller string, fleet *reach.Fleet) string {
	t.Helper()
	to, err := reach.ParseSelector("reviews.shop", false)
	if err != nil {
		t.Fatal(err)
	}
	found, err := ask(t, text, reach.Options{To: to, Proxies: fleet})
	if err != nil {
		t.Fatal(err)
	}
	namespace, _, _ := strings.Cut(caller, "/")
	for _, row := range found.Rows {
		if slices.Contains(row.From, caller) || slices.Contains(row.From, namespace+"/*") {
			return strings.TrimSpace(fmt.Sprintf("%s, %s, enforced %s %s%s", row.Answer, row.TLS, row.Enforced, strings.Join(row.DependsOn, "+"), row.Reason))
		}
	}
	t.Fatalf("no row is for %s: %+v", caller, found.Rows)
	return ""
}

func sidecar(ip, namespace string, lost bool) reach.Proxy {
	return reach.Proxy{Proxy: mesh.Proxy{Role: mesh.Sidecar, IP: ip, ID: "a", Domain: namespace + ".svc.cluster.local"}, Lost: lost}
}

// TestAnswers asks who can call a service under modes of TLS, policies, rules of callers, and with
// proxies that are connected, lost or missing.
func TestAnswers(t *testing.T) {
	secured := service("shop", "reviews", "10.1.0.1", true, "") + service("shop", "web", "10.1.0.2", false, "") + service("jobs", "batch", "10.1.0.3", false, "")
	plain := strings.Replace(secured, ", security.istio.io/tlsMode: istio", "", 1)
	allowWeb := object("AuthorizationPolicy", "shop", "p", "{rules: [{from: [{source: {serviceAccounts: [web]}}]}]}")
	both := reach.NewFleet([]reach.Proxy{sidecar("10.1.0.1", "shop", false), sidecar("10.1.0.2", "shop", false)}, true)
	const nobody = "no proxy of the workload is connected, so nobody enforces anything"
	for name, c := range map[string]struct {
		objects, caller string
		fleet           *reach.Fleet
		want            string
	}{
		"without rules":         {secured, "outside", nil, "allowed, plain text, enforced yes"},
		"mutual TLS":            {secured, "shop/web", nil, "allowed, mutual TLS, enforced yes"},
		"without the label":     {plain, "shop/web", nil, "allowed, plain text, enforced yes"},
		"strict, plain text":    {secured + object("PeerAuthentication", "shop", "d", strict), "outside", nil, "denied, plain text, enforced yes plain text is refused: the port takes mutual TLS only"},
		"strict, mutual TLS":    {secured + object("PeerAuthentication", "shop", "d", strict), "jobs/batch", nil, "allowed, mutual TLS, enforced yes"},
		"strict, no label":      {plain + object("PeerAuthentication", "shop", "d", strict), "shop/web", nil, "denied, plain text, enforced yes plain text is refused: the port takes mutual TLS only"},
		"nothing allowed":       {secured + object("AuthorizationPolicy", "shop", "p", nothing), "shop/web", nil, "denied, mutual TLS, enforced yes no AuthorizationPolicy allows it"},
		"by account":            {secured + allowWeb, "shop/web", nil, "allowed, mutual TLS, enforced yes"},
		"by another account":    {secured + allowWeb, "jobs/batch", nil, "denied, mutual TLS, enforced yes no AuthorizationPolicy allows it"},
		"no identity":           {plain + allowWeb, "shop/web", nil, "denied, plain text, enforced yes no AuthorizationPolicy allows it"},
		"deny in plain text":    {secured + object("AuthorizationPolicy", "shop", "p", "{action: DENY, rules: [{from: [{source: {namespaces: ['*']}}]}]}"), "outside", nil, "allowed, plain text, enforced yes"},
		"by path and method":    {secured + object("AuthorizationPolicy", "shop", "p", "{action: DENY, rules: [{to: [{operation: {paths: [/a], methods: [GET]}}]}]}"), "shop/web", nil, "depends, mutual TLS, enforced yes the method+the path"},
		"by a header":           {secured + object("AuthorizationPolicy", "shop", "p", "{rules: [{when: [{key: 'request.headers[x-a]', values: [b]}]}]}"), "shop/web", nil, "depends, mutual TLS, enforced yes the header x-a"},
		"without tokens":        {secured + object("AuthorizationPolicy", "shop", "p", "{rules: [{from: [{source: {requestPrincipals: ['*']}}]}]}"), "shop/web", nil, "denied, mutual TLS, enforced yes no AuthorizationPolicy allows it"},
		"by address":            {secured + object("AuthorizationPolicy", "shop", "p", "{rules: [{from: [{source: {ipBlocks: [10.1.0.0/16]}}]}]}"), "shop/web", nil, "allowed, mutual TLS, enforced yes"},
		"unknown address":       {secured + object("AuthorizationPolicy", "shop", "p", "{rules: [{from: [{source: {ipBlocks: [10.1.0.0/16]}}]}]}"), "outside", nil, "depends, plain text, enforced yes the address of the caller"},
		"denied before allowed": {secured + allowWeb + object("AuthorizationPolicy", "istio-system", "p", "{action: DENY, rules: [{}]}"), "shop/web", nil, "denied, mutual TLS, enforced yes"},
		"dry run":               {secured + strings.Replace(object("AuthorizationPolicy", "shop", "p", nothing), "name: p", "name: p, annotations: {istio.io/dry-run: 'true'}", 1), "outside", nil, "allowed, plain text, enforced yes"},
		"plain by rule":         {secured + allowWeb + object("DestinationRule", "shop", "r", "{host: reviews, trafficPolicy: {tls: {mode: DISABLE}}}"), "shop/web", nil, "denied, plain text, enforced yes no AuthorizationPolicy allows it"},
		"by subset":             {secured + allowWeb + object("DestinationRule", "shop", "r", "{host: reviews, subsets: [{name: a, labels: {app: reviews}, trafficPolicy: {tls: {mode: DISABLE}}}]}"), "shop/web", nil, "depends, plain text or mutual TLS, enforced yes how the connection beginsno AuthorizationPolicy allows it"},
		"other TLS":             {secured + object("DestinationRule", "shop", "r", "{host: reviews, trafficPolicy: {tls: {mode: SIMPLE, insecureSkipVerify: true}}}"), "shop/web", nil, "denied, other TLS, enforced yes TLS without a certificate of the mesh is refused"},
		"not exported":          {strings.Replace(secured, "  \n---", "  exportTo: ['.']\n---", 1), "jobs/batch", nil, "allowed, plain text, enforced yes the caller does not see the service, and can only call its address"},
		"not imported":          {secured + object("Sidecar", "jobs", "s", "{egress: [{hosts: ['./*']}]}"), "jobs/batch", nil, "allowed, plain text, enforced yes the caller does not see the service, and can only call its address"},
		"port not opened":       {secured + object("Sidecar", "shop", "s", "{workloadSelector: {labels: {app: reviews}}, ingress: [{port: {number: 1, name: a, protocol: HTTP}, defaultEndpoint: '127.0.0.1:1'}]}"), "shop/web", nil, "depends, mutual TLS, enforced no where the machine sends a port for which the proxy has no listener"},
		"both have proxies":     {secured + allowWeb, "shop/web", both, "allowed, mutual TLS, enforced yes"},
		"caller without proxy":  {secured + allowWeb, "jobs/batch", both, "denied, plain text, enforced yes no AuthorizationPolicy allows it"},
		"callee without proxy":  {plain + object("AuthorizationPolicy", "shop", "p", nothing), "outside", reach.NewFleet(nil, true), "allowed, plain text, enforced no " + nobody},
		"no proxy, mutual TLS":  {secured + allowWeb, "shop/web", reach.NewFleet([]reach.Proxy{sidecar("10.1.0.2", "shop", false)}, true), "depends, mutual TLS, enforced no whether the workload itself takes mutual TLSno proxy of the workload is connected"},
		"of another namespace":  {plain + object("AuthorizationPolicy", "shop", "p", nothing), "outside", reach.NewFleet([]reach.Proxy{sidecar("10.1.0.1", "jobs", false)}, true), "allowed, plain text, enforced no " + nobody},
		"lost proxy":            {secured + object("AuthorizationPolicy", "shop", "p", nothing), "outside", reach.NewFleet([]reach.Proxy{sidecar("10.1.0.1", "shop", true)}, true), "depends, plain text, enforced unknown whether a proxy of the workload runsno AuthorizationPolicy allows it"},
		"silent replica":        {secured + object("AuthorizationPolicy", "shop", "p", nothing), "outside", reach.NewFleet(nil, false), "depends, plain text, enforced unknown whether a proxy of the workload runsno AuthorizationPolicy allows it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rowFor(t, c.objects, c.caller, c.fleet); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestInstancesDiffer asks about a service with an instance that a policy protects and one that it
// does not.
func TestInstancesDiffer(t *testing.T) {
	text := strings.Replace(service("shop", "reviews", "10.1.0.1", false, ""), "  endpoints: [", "  endpoints: [{address: 10.1.0.4, labels: {version: v2}}, ", 1) +
		object("AuthorizationPolicy", "shop", "p", "{selector: {matchLabels: {version: v2}}}")
	want := "depends, plain text, enforced yes the instance that takes the callno AuthorizationPolicy allows it"
	if got := rowFor(t, text, "outside", nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	half := reach.NewFleet([]reach.Proxy{sidecar("10.1.0.4", "shop", false)}, true)
	if got := rowFor(t, text, "outside", half); !strings.HasPrefix(got, "depends, plain text, enforced partly") {
		t.Errorf("with one proxy: %s", got)
	}
}

// TestMatrix asks about the whole mesh, and about the part that somebody may read.
func TestMatrix(t *testing.T) {
	text := service("shop", "reviews", "10.1.0.1", true, "") + service("shop", "web", "10.1.0.2", true, "") + service("jobs", "batch", "10.1.0.3", true, "") +
		object("AuthorizationPolicy", "shop", "p", "{selector: {matchLabels: {app: reviews}}, rules: [{from: [{source: {namespaces: [shop]}}]}]}")
	found, err := ask(t, text, reach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := found.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"jobs        allowed   1 of 2", "outside     allowed   1 of 2", "shop        allowed   allowed", "taken to have a proxy"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	found, err = ask(t, text, reach.Options{May: func(namespace string) bool { return namespace == "jobs" }, Limit: 1})
	if err != nil || len(found.Matrix) != 1 || found.Omitted != 1 || !found.Limited || found.Matrix[0].To != "jobs" {
		t.Errorf("got %+v, %v", found, err)
	}
}

// TestUnknownAccount asks about callers whose account is not known.
func TestUnknownAccount(t *testing.T) {
	text := service("shop", "reviews", "10.1.0.1", true, "") + strings.Replace(service("jobs", "batch", "10.1.0.3", true, ""), "serviceAccount: batch, ", "", 1)
	for rule, want := range map[string]string{
		"namespaces: [jobs]":                       "allowed, mutual TLS, enforced yes",
		"namespaces: [shop]":                       "denied, mutual TLS, enforced yes no AuthorizationPolicy allows it",
		"principals: ['*']":                        "allowed, mutual TLS, enforced yes",
		"principals: ['cluster.local/ns/jobs/*']":  "allowed, mutual TLS, enforced yes",
		"principals: [cluster.local/ns/jobs/sa/a]": "depends, mutual TLS, enforced yes the account of the caller",
		"principals: [cluster.local/ns/shop/sa/a]": "denied, mutual TLS, enforced yes no AuthorizationPolicy allows it",
		"serviceAccounts: [jobs/a]":                "depends, mutual TLS, enforced yes the account of the caller",
	} {
		p := object("AuthorizationPolicy", "shop", "p", "{rules: [{from: [{source: {"+rule+"}}]}]}")
		if got := rowFor(t, text+p, "jobs/?", nil); got != want {
			t.Errorf("%s: got %s, want %s", rule, got, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	text := service("shop", "reviews", "10.1.0.1", true, "") + service("jobs", "batch", "10.1.0.3", true, "")
	for from, callers := range map[string][]string{
		"": {"jobs/batch", "outside", "shop/reviews"}, "reviews.shop": {"shop/reviews"}, "namespace/jobs": {"jobs/batch"}, "account/jobs/batch": {"jobs/batch"},
		"outside": {"outside"}, "reviews.shop.svc.cluster.local.": {"shop/reviews"}, "batch": {"jobs/batch"},
	} {
		s, err := reach.ParseSelector(from, true)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := reach.ParseSelector("reviews", false)
		found, err := ask(t, text, reach.Options{From: s, To: to})
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		var got []string
		for _, row := range found.Rows {
			got = append(got, row.From...)
		}
		if slices.Sort(got); !slices.Equal(got, callers) {
			t.Errorf("%s: %v, want %v", from, got, callers)
		}
	}
	for _, bad := range []string{"a/b/c", "namespace/", "account/a", "outside/x"} {
		if _, err := reach.ParseSelector(bad, true); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := reach.ParseSelector("account/a/b", false); err == nil {
		t.Error("an account is taken as a service")
	}
	none, _ := reach.ParseSelector("nobody", true)
	if _, err := ask(t, text, reach.Options{From: none}); !errors.Is(err, reach.ErrNothing) {
		t.Errorf("nothing is selected: %v", err)
	}
}

// TestTooMuch asks about more pairs than an answer may have.
func TestTooMuch(t *testing.T) {
	ports, endpoints := make([]string, 100), make([]string, 4000)
	for i := range ports {
		ports[i] = fmt.Sprintf("{number: %d, name: p%d, protocol: TCP}", 1000+i, i)
	}
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("{address: 10.9.%d.%d, serviceAccount: a%d}", i/250, 1+i%250, i)
	}
	const entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s%d}\nspec: {hosts: [s%d.shop.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [%s], endpoints: [%s]}\n---\n"
	text := fmt.Sprintf(entry, 0, 0, ports[0], strings.Join(endpoints, ", "))
	for i := 1; i < 27; i++ {
		text += fmt.Sprintf(entry, i, i, strings.Join(ports, ", "), "")
	}
	if _, err := ask(t, text, reach.Options{}); !errors.Is(err, reach.ErrTooMuch) {
		t.Errorf("got %v", err)
	}
	to, _ := reach.ParseSelector("s0", false)
	found, err := ask(t, text, reach.Options{To: to})
	if err != nil || found.Rows[0].Callers != 4001 || len(found.Rows[0].From) > 100 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// BenchmarkMatrix asks about a mesh with a namespace for each ten services, in which each service has a
// policy for the accounts of some others.
func BenchmarkMatrix(b *testing.B) {
	for _, services := range []int{300, 1000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			var text strings.Builder
			for i := range services {
				namespace, name := fmt.Sprintf("n%d", i/10), fmt.Sprintf("s%d", i)
				text.WriteString(service(namespace, name, fmt.Sprintf("10.%d.%d.%d", 1+i/60000, i/250%250, 1+i%250), true, ""))
				text.WriteString(object("AuthorizationPolicy", namespace, name, fmt.Sprintf(
					"{selector: {matchLabels: {app: %s}}, rules: [{from: [{source: {serviceAccounts: [%s, n%d/s%d]}}], to: [{operation: {methods: [GET]}}]}]}", name, name, (i+7)%services/10, (i+7)%services)))
			}
			s := snapshotOf(b, text.String())
			to, _ := reach.ParseSelector("s1.n0", false)
			for b.Loop() {
				c := compile.NewCompiler()
				c.Advance(s)
				if _, err := reach.Find(b.Context(), c, s, reach.Options{}); err != nil {
					b.Fatal(err)
				}
				if _, err := reach.Find(b.Context(), c, s, reach.Options{To: to}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
