package traffic_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// drawnCase is a workload under random policies, with a port of HTTP and one of TCP.
type drawnCase struct {
	http, tcp int
	policies  string
	config    *ir.Config
	filters   map[int][]*accessv3.RBAC // by port, with mutual TLS and without
}

// drawnCall is a random request or connection.
type drawnCall struct {
	port               int
	method, host, path string
	team               string // the header x-team; "" for none
	peer               string // the certificate; "" for plain text
	client             netip.Addr
}

var (
	drawnPeers   = []string{"", "caller", "shop", "elsewhere"}
	drawnNames   = map[string]string{"caller": "spiffe://cluster.local/ns/default/sa/caller", "shop": "spiffe://cluster.local/ns/default/sa/shop", "elsewhere": "spiffe://cluster.local/ns/bank/sa/caller"}
	drawnMethods = []string{"GET", "PUT", "DELETE"}
	drawnHosts   = []string{"a.example", "b.example", "A.Example", "a.example:80", "c.example"}
	drawnPaths   = []string{"/", "/a", "/a/b", "/a/b/c", "/b", "/B", "/x/1/y", "/x/1/2/y", "/a?q"}
	drawnClients = []string{"127.0.0.1", "10.0.0.9", "10.1.0.9", "192.0.2.7"}
)

func one(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

// list returns some of the texts as a list in YAML.
func list(r *rand.Rand, of ...string) string {
	var out []string
	for range 1 + r.IntN(2) {
		out = append(out, fmt.Sprintf("%q", one(r, of)))
	}
	return "[" + strings.Join(slices.Compact(out), ", ") + "]"
}

// fields returns some fields, each perhaps as notX.
func fields(r *rand.Rand, values map[string][]string) string {
	var names, out []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if r.IntN(len(names)) > 0 {
			continue
		}
		field := name
		if r.IntN(4) == 0 {
			field = "not" + strings.ToUpper(name[:1]) + name[1:]
		}
		out = append(out, field+": "+list(r, values[name]...))
	}
	if len(out) == 0 {
		out = append(out, names[0]+": "+list(r, values[names[0]]...))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func (c *drawnCase) rule(r *rand.Rand) string {
	var parts []string
	ports := []string{fmt.Sprint(c.http), fmt.Sprint(c.tcp), "1"}
	if r.IntN(3) > 0 {
		peers := map[string][]string{"principals": {"cluster.local/ns/default/sa/caller", "cluster.local/ns/default/*", "*/sa/caller", "*"}, "namespaces": {"default", "bank", "*", "ba*"}}
		if r.IntN(3) == 0 {
			peers = map[string][]string{"serviceAccounts": {"caller", "bank/caller", "default/shop"}}
		}
		maps.Copy(peers, map[string][]string{
			"trustDomains": {"cluster.local", "other.example"}, "ipBlocks": {"10.0.0.0/8", "127.0.0.1", "10.1.0.0/16"},
		})
		parts = append(parts, "from: [{source: "+fields(r, peers)+"}]")
	}
	if r.IntN(3) > 0 {
		parts = append(parts, "to: [{operation: "+fields(r, map[string][]string{
			"methods": {"GET", "P*", "*"}, "paths": {"/a", "/a/*", "*/y", "/x/{*}/y", "/a/{**}", "*"}, "hosts": {"a.example", "*.example", "b.*"}, "ports": ports,
		})+"}]")
	}
	if r.IntN(4) == 0 {
		key := one(r, []string{"request.headers[x-team]", "source.namespace", "source.ip", "destination.port", "source.principal"})
		values := map[string][]string{
			"request.headers[x-team]": {"red", "b*", "*"}, "source.namespace": {"default", "bank"}, "source.ip": {"10.0.0.0/16", "127.0.0.0/8"},
			"destination.port": ports, "source.principal": {"cluster.local/ns/bank/sa/caller", "*"},
		}[key]
		field := one(r, []string{"values", "values", "notValues"})
		parts = append(parts, fmt.Sprintf("when: [{key: %q, %s: %s}]", key, field, list(r, values...)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// drawnPolicies returns random policies for the workload.
func (c *drawnCase) draw(r *rand.Rand) {
	for i := range 1 + r.IntN(3) {
		var rules []string
		for range r.IntN(3) {
			rules = append(rules, c.rule(r))
		}
		action := one(r, []string{"ALLOW", "ALLOW", "DENY", "DENY", "AUDIT"})
		text := policy(fmt.Sprintf("p%d", i), fmt.Sprintf("{action: %s, rules: [%s]}", action, strings.Join(rules, ", ")))
		if len(rules) == 0 {
			text = policy(fmt.Sprintf("p%d", i), fmt.Sprintf("{action: %s}", action))
		}
		if r.IntN(8) == 0 {
			text = strings.Replace(text, "metadata: {", "metadata: {annotations: {istio.io/dry-run: 'true'}, ", 1)
		}
		c.policies += text
	}
}

// drawCall returns a call. One that goes through an Envoy comes from the address of the test.
func drawCall(r *rand.Rand, c *drawnCase, anywhere bool) drawnCall {
	out := drawnCall{
		port: c.http, method: one(r, drawnMethods), host: one(r, drawnHosts), path: one(r, drawnPaths), team: one(r, []string{"", "red", "blue"}),
		peer: one(r, drawnPeers), client: netip.MustParseAddr(one(r, drawnClients)),
	}
	if !anywhere {
		out.client = netip.MustParseAddr("127.0.0.1")
	}
	if r.IntN(5) == 0 {
		out.port = c.tcp
	}
	return out
}

func (c drawnCall) text() string {
	var headers []string
	if c.team != "" {
		headers = append(headers, "x-team: "+c.team)
	}
	return method(c.method, c.host, c.path, headers...)
}

func (c drawnCall) caller() explain.Caller {
	return explain.Caller{MutualTLS: c.peer != "", Principal: drawnNames[c.peer], Addresses: []netip.Addr{c.client}}
}

// byExplain returns what package explain says.
func (c drawnCall) byExplain(t *testing.T, of *drawnCase) bool {
	t.Helper()
	r, err := explain.NewRequest(c.method, "http://"+c.host+c.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.team != "" {
		r.Headers["x-team"] = []string{c.team}
	}
	who := c.caller()
	r.Way, r.Address, r.Port, r.Caller = explain.Captured, "10.0.0.7", c.port, &who
	found := explain.Proxy{Config: of.config, IP: "10.0.0.7"}.Explain(r)
	for _, a := range found.Access {
		if a.Effect == explain.Depends {
			t.Fatalf("%+v depends on %s\n%s", c, a.DependsOn, of.policies)
		}
	}
	return found.Forward != nil
}

// byEvaluator returns what an evaluator of Envoy's filters says.
func (c drawnCall) byEvaluator(t *testing.T, of *drawnCase) bool {
	t.Helper()
	path, _, _ := strings.Cut(c.path, "?")
	r := evaluator.AccessRequest{
		Peer: drawnNames[c.peer], HasPeer: c.peer != "", Direct: c.client, Remote: c.client, Destination: netip.MustParseAddr("10.0.0.7"), Port: uint32(c.port), Path: path,
		Headers: map[string]string{":method": c.method, ":authority": c.host},
	}
	if c.team != "" {
		r.Headers["x-team"] = c.team
	}
	return r.Passes(t, of.filters[c.port])
}

// byReach returns what becomes of all calls of the caller.
func (c drawnCall) byReach(of *drawnCase, calls *explain.Calls) explain.CallAnswer {
	return calls.To(of.listener(c.port), c.caller(), "10.0.0.7").Answer
}

func (c *drawnCase) listener(port int) *ir.Listener {
	for _, l := range c.config.ListenersAt("10.0.0.7") {
		if l.Direction == ir.Inbound && l.Port == port {
			return l
		}
	}
	return nil
}

// rulesOfChain returns the rules that a chain enforces.
func rulesOfChain(t *testing.T, chain *listenerv3.FilterChain) (out []*accessv3.RBAC) {
	t.Helper()
	add := func(config *anypb.Any) {
		message, err := config.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		var rules *accessv3.RBAC // nil for a filter that only counts
		switch m := message.(type) {
		case *rbacv3.RBAC:
			rules = m.GetRules()
		case *networkrbacv3.RBAC:
			rules = m.GetRules()
		}
		if rules != nil {
			out = append(out, rules)
		}
	}
	for _, f := range chain.GetFilters() {
		manager := &hcmv3.HttpConnectionManager{}
		if f.GetTypedConfig().UnmarshalTo(manager) != nil {
			add(f.GetTypedConfig())
			continue
		}
		for _, hf := range manager.GetHttpFilters() {
			add(hf.GetTypedConfig())
		}
	}
	return out
}

// newDrawnCase compiles random policies for a workload whose ports no other case has.
func newDrawnCase(t *testing.T, settings *mesh.Settings, n, backend int) *drawnCase {
	t.Helper()
	c := &drawnCase{http: 1000 + n, tcp: 3000 + n, filters: map[int][]*accessv3.RBAC{}}
	c.draw(rand.New(rand.NewPCG(uint64(n), 23)))
	objects := strings.NewReplacer("number: 80,", fmt.Sprintf("number: %d,", c.http), "number: 5000,", fmt.Sprintf("number: %d,", c.tcp)).
		Replace(strings.TrimSuffix(fmt.Sprintf(accessService, backend), "---\n")) + c.policies
	snapshot := parsedMesh(t, settings, objects)
	cfg, _ := compile.Proxy(snapshot, viewOf(t, snapshot, callerNode))
	c.config = withEndpoints(snapshot, withTables(cfg))
	for _, port := range []int{c.http, c.tcp} {
		encoded, _ := v3.Listener(c.listener(port), v3.Polled(time.Second))
		c.filters[port] = rulesOfChain(t, encoded.GetFilterChains()[0])
	}
	return c
}

// TestExplainedPolicies compares package explain, an evaluator of Envoy's filters and the answers
// about all calls of a caller, for random policies and calls.
func TestExplainedPolicies(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: "/a.crt", KeyFile: "/a.key", CAFile: "/ca.crt"}
	counts := map[string]int{}
	for n := range 150 {
		compareDrawn(t, newDrawnCase(t, settings, n, 1), n, 40, counts, nil)
	}
	t.Log(counts)
}

// TestPoliciesThroughAnEnvoy sends 2,000 random calls to workloads under random policies through
// real Envoys, and compares the answers with package explain, with an evaluator of Envoy's filters,
// and with the answers about all calls of a caller.
//
// Observes AuthorizationPolicy rules[].from[].source.principals rules[].from[].source.serviceAccounts rules[].from[].source.trustDomains
func TestPoliciesThroughAnEnvoy(t *testing.T) {
	outside.Slow(t)
	certificates := newMeshCertificates(t)
	certificates.authority.Issue(t, "elsewhere", drawnNames["elsewhere"])
	settings := certificates.settings("shop")
	backend := answering(t, "app")
	counts := map[string]int{}
	const perEnvoy, envoys, callsOfCase = 50, 2, 20
	for round := range envoys {
		var cases []*drawnCase
		for n := range perEnvoy {
			cases = append(cases, newDrawnCase(t, settings, 500+round*perEnvoy+n, backend))
		}
		e := envoytest.Start(t, together(cases))
		for n, c := range cases {
			compareDrawn(t, c, n, callsOfCase, counts, func(call drawnCall) bool { return passes(t, e, certificates, call) })
		}
	}
	t.Log(counts)
}

// together returns one configuration for the workloads of several cases.
func together(cases []*drawnCase) *ir.Config {
	out := *cases[0].config
	for _, c := range cases[1:] {
		for _, l := range c.config.Listeners {
			if l.Direction == ir.Inbound {
				out.Listeners = append(out.Listeners, l)
			}
		}
		for _, cluster := range c.config.Clusters {
			if strings.HasPrefix(cluster.Name, "in.") {
				out.Clusters = append(out.Clusters, cluster)
			}
		}
	}
	return &out
}

// passes reports whether an Envoy passes a call on.
func passes(t *testing.T, e *envoytest.Envoy, certificates meshCertificates, call drawnCall) bool {
	t.Helper()
	conn := e.Captured("10.0.0.7", call.port)
	if call.peer != "" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"istio"}, Certificates: []tls.Certificate{certificates.pair(t, call.peer)}})
	}
	answer := firstLine(conn, call.text())
	switch {
	case strings.HasPrefix(answer, "HTTP/1.1 200"):
		return true
	case answer == "", strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d", http.StatusForbidden)):
		return false
	}
	t.Fatalf("%+v: %q", call, answer)
	return false
}

// compareDrawn compares everybody who knows an answer. envoy may be nil.
func compareDrawn(t *testing.T, c *drawnCase, seed, calls int, counts map[string]int, envoy func(drawnCall) bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 29))
	var all explain.Calls
	for range calls {
		call := drawCall(r, c, envoy == nil)
		explained, evaluated, reached := call.byExplain(t, c), call.byEvaluator(t, c), call.byReach(c, &all)
		counts[fmt.Sprintf("%s %v", reached, explained)]++
		if explained != evaluated {
			t.Fatalf("%+v: explain says %v, the evaluator %v\n%s", call, explained, evaluated, c.policies)
		}
		if reached == explain.CallAllowed && !explained || reached == explain.CallDenied && explained {
			t.Fatalf("%+v: explain says %v, and that all such calls are %s\n%s", call, explained, reached, c.policies)
		}
		if envoy == nil {
			continue
		}
		if passed := envoy(call); passed != explained {
			t.Fatalf("%+v: explain says %v, the Envoy %v\n%s", call, explained, passed, c.policies)
		}
	}
}
