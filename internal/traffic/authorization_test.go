package traffic_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// accessService is the workload beside the proxy, with a port of HTTP and one of TCP.
const accessService = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: caller}
spec:
  hosts: [caller.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 5000, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.0.0.7, labels: {app: caller}}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: caller}
spec:
  ingress:
  - {port: {number: 80, protocol: HTTP, name: http}, defaultEndpoint: '127.0.0.1:%[1]d'}
  - {port: {number: 5000, protocol: TCP, name: tcp}, defaultEndpoint: '127.0.0.1:%[1]d'}
---
`

// accessRow is a request, and whether it is taken: 200, 403, 400, or 0 for a closed connection.
type accessRow struct {
	port    int
	request string
	want    int
}

func get(host, path string, headers ...string) string {
	return method("GET", host, path, headers...)
}

func method(method, host, path string, headers ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, path, host, strings.Join(append(headers, ""), "\r\n"))
}

// accessCases are policies with requests to the workload.
var accessCases = map[string]struct {
	policies string
	rows     []accessRow
}{
	"none":                 {"", []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"allow nothing":        {policy("p", "{}"), []accessRow{{80, get("a", "/"), 403}, {5000, get("a", "/"), 0}}},
	"allow everything":     {policy("p", "{rules: [{}]}"), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"deny nothing":         {policy("p", "{action: DENY}"), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"of another workload":  {policy("p", "{selector: {matchLabels: {app: other}}}"), []accessRow{{80, get("a", "/"), 200}}},
	"of the mesh":          {strings.Replace(policy("p", "{}"), "name: p", "name: p, namespace: istio-system", 1), []accessRow{{80, get("a", "/"), 403}}},
	"of another namespace": {strings.Replace(policy("p", "{}"), "name: p", "name: p, namespace: other", 1), []accessRow{{80, get("a", "/"), 200}}},
	"paths": {policy("p", "{action: DENY, rules: [{to: [{operation: {paths: ['/admin*', '/x/{*}/y', '*/end']}}]}]}"), []accessRow{
		{80, get("a", "/"), 200}, {80, get("a", "/admin"), 403}, {80, get("a", "/admin/x?q"), 403}, {80, get("a", "/?/admin"), 200},
		{80, get("a", "/a/../admin"), 403}, {80, get("a", "/%61dmin"), 403}, {80, get("a", "//admin"), 403}, {80, get("a", "/a//../admin"), 200},
		{80, get("a", "/a%2f..%2fadmin"), 400}, {80, get("a", "/a%5c..%5cadmin"), 400}, {80, get("a", "/ADMIN"), 200},
		{80, get("a", "/x/1/y"), 403}, {80, get("a", "/x/1/2/y"), 200}, {80, get("a", "/q/end"), 403}, {80, get("a", "/q/end/"), 200},
		// The port of TCP sees no paths, so the rule denies everything there.
		{5000, get("a", "/"), 0},
	}},
	"hosts": {policy("p", "{action: DENY, rules: [{to: [{operation: {hosts: [Shop.example, '*.inner.example']}}]}]}"), []accessRow{
		{80, get("shop.example", "/"), 403}, {80, get("SHOP.EXAMPLE", "/"), 403}, {80, get("shop.example:80", "/"), 403}, {80, get("shop.example:8080", "/"), 403},
		{80, get("shop.example.", "/"), 403}, {80, get("a.inner.example:1", "/"), 403}, {80, get("A.INNER.example", "/"), 403}, {80, get("ashop.example", "/"), 200}, {80, get("shop.example.org", "/"), 200},
	}},
	"methods": {policy("p", "{rules: [{to: [{operation: {methods: [GET, 'P*']}}]}]}"), []accessRow{
		{80, get("a", "/"), 200}, {80, method("PUT", "a", "/"), 200}, {80, method("DELETE", "a", "/"), 403}, {5000, get("a", "/"), 0},
	}},
	"headers": {policy("p", "{action: DENY, rules: [{when: [{key: 'request.headers[X-Team]', values: [red]}]}]}"), []accessRow{
		{80, get("a", "/"), 200}, {80, get("a", "/", "x-team: red"), 403}, {80, get("a", "/", "X-TEAM: red"), 403}, {80, get("a", "/", "x-team: blue"), 200}, {80, get("a", "/", "x_team: red"), 200},
	}},
	"ports":               {policy("p", `{action: DENY, rules: [{to: [{operation: {ports: ["5000"]}}]}]}`), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 0}}},
	"addresses":           {policy("p", "{rules: [{from: [{source: {ipBlocks: [127.0.0.0/8], notIpBlocks: [10.0.0.0/8]}}]}]}"), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"other addresses":     {policy("p", "{rules: [{from: [{source: {ipBlocks: [192.0.2.0/24]}}]}]}"), []accessRow{{80, get("a", "/"), 403}, {5000, get("a", "/"), 0}}},
	"peers in plain text": {policy("p", "{rules: [{from: [{source: {namespaces: ['*']}}]}]}"), []accessRow{{80, get("a", "/"), 403}, {5000, get("a", "/"), 0}}},
	"no token":            {policy("p", "{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ['*']}}]}]}"), []accessRow{{80, get("a", "/"), 403}, {80, get("a", "/", "authorization: Bearer x"), 403}}},
	"deny before allow":   {policy("p", "{rules: [{}]}") + policy("q", "{action: DENY, rules: [{to: [{operation: {paths: [/no]}}]}]}"), []accessRow{{80, get("a", "/"), 200}, {80, get("a", "/no"), 403}}},
	"two that allow":      {policy("p", "{rules: [{to: [{operation: {paths: [/p]}}]}]}") + policy("q", "{rules: [{to: [{operation: {paths: [/q]}}]}]}"), []accessRow{{80, get("a", "/p"), 200}, {80, get("a", "/q"), 200}, {80, get("a", "/"), 403}}},
	"dry run":             {strings.Replace(policy("p", "{}"), "name: p", "name: p, annotations: {istio.io/dry-run: 'true'}", 1), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"audit":               {policy("p", "{action: AUDIT, rules: [{}]}"), []accessRow{{80, get("a", "/"), 200}, {5000, get("a", "/"), 200}}},
	"custom":              {policy("p", "{action: CUSTOM, provider: {name: x}, rules: [{to: [{operation: {paths: [/ask]}}]}]}"), []accessRow{{80, get("a", "/"), 200}, {80, get("a", "/ask"), 403}, {5000, get("a", "/"), 0}}},
}

func policy(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

// TestWhatPoliciesRefuse sends requests and connections to a workload under policies, through
// a real Envoy.
//
// Observes AuthorizationPolicy action selector.matchLabels
// Observes AuthorizationPolicy rules[].to[].operation.paths rules[].to[].operation.hosts rules[].to[].operation.methods rules[].to[].operation.ports
// Observes AuthorizationPolicy rules[].from[].source.ipBlocks rules[].from[].source.notIpBlocks rules[].from[].source.namespaces rules[].from[].source.notRequestPrincipals
// Observes AuthorizationPolicy rules[].when[].key rules[].when[].values
func TestWhatPoliciesRefuse(t *testing.T) {
	outside.Slow(t)
	port := answering(t, "app")
	for name, c := range accessCases {
		t.Run(name, func(t *testing.T) {
			objects := strings.TrimSuffix(fmt.Sprintf(accessService, port), "---\n") + c.policies
			e := startCompiled(t, mesh.DefaultSettings(), callerNode, objects)
			config, _ := compiledFor(t, mesh.DefaultSettings(), callerNode, objects)
			for _, row := range c.rows {
				got := 0
				_, _ = fmt.Sscanf(sent(e, row), "HTTP/1.1 %d", &got)
				if got != row.want {
					t.Errorf("port %d: %q: %d, want %d", row.port, row.request, got, row.want)
				}
				if said := explained(t, config, row); said != 0 && said != row.want {
					t.Errorf("port %d: %q is explained as %d, and the Envoy answers %d", row.port, row.request, said, row.want)
				}
			}
		})
	}
}

// explained returns what package explain says of a request at the port of HTTP: 200, 403 or
// 400, and 0 if that depends on the caller.
func explained(t *testing.T, config *ir.Config, row accessRow) int {
	t.Helper()
	if row.port != 80 {
		return 0
	}
	found := explanation(t, config, row.request)
	for _, a := range found.Access {
		if a.Effect == explain.Depends {
			return 0
		}
	}
	return answerOf(found)
}

// answerOf returns the status of the answer that is explained, 200 for that of the workload.
func answerOf(found *explain.Explanation) int {
	if found.Answer != nil {
		return found.Answer.Status
	}
	return http.StatusOK
}

// explanation returns what package explain says of a request at port 80 of the workload.
func explanation(t *testing.T, config *ir.Config, text string) *explain.Explanation {
	t.Helper()
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(text, " ")
	path, _, _ = strings.Cut(path, " ")
	r, err := explain.NewRequest(parsed.Method, "http://"+parsed.Host+path, lowered(parsed.Header))
	if err != nil {
		t.Fatal(err)
	}
	r.Way, r.Address, r.Port = explain.Captured, "10.0.0.7", 80
	return explain.Proxy{Config: config, IP: "10.0.0.7"}.Explain(r)
}

func lowered(headers http.Header) map[string][]string {
	out := map[string][]string{}
	for name, values := range headers {
		out[strings.ToLower(name)] = values
	}
	return out
}

// sent returns the first line of the answer to a request, or "" if the connection is closed.
func sent(e *envoytest.Envoy, row accessRow) string {
	return firstLine(e.Captured("10.0.0.7", row.port), row.request)
}
