package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestPortsWithoutProtocol: HTTP routes that have no effect at a port whose protocol
// nobody has given are told of, and at one that is TCP on purpose they are not.
func TestPortsWithoutProtocol(t *testing.T) {
	const http = "{number: 80, name: http, protocol: HTTP}"
	for _, test := range []struct{ name, ports, more, want string }{
		{"not given", http + ", {number: 7000, name: http-x}, {number: 7001, name: y}", "", "7000, 7001"},
		{"TCP on purpose", http + ", {number: 7000, name: x, protocol: TCP}", "", ""},
		{"with routes of its own", http + ", {number: 7000, name: x}", "tcp: [{match: [{port: 7000}], route: [{destination: {host: a, port: {number: 7000}}}]}]", ""},
		{"routes of another port", http + ", {number: 7000, name: x}, {number: 7001, name: y}", "tcp: [{match: [{port: 7000}], route: [{destination: {host: a, port: {number: 7000}}}]}]", "7001"},
		{"the only port", "{number: 7000, name: x}", "", "at its ports: none of them is HTTP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec:
  hosts: [a.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [`+test.ports+`]
  endpoints: [{address: 10.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec:
  hosts: [a]
  http:
  - match: [{uri: {prefix: /admin}}]
    directResponse: {status: 403}
  - route: [{destination: {host: a}}]
  `+test.more+"\n"))
			c := compile.NewCompiler()
			c.Advance(s)
			problems := c.Problems()
			i := slices.IndexFunc(problems, func(p diag.Problem) bool { return p.Code == diag.WrongProtocol && p.Field == "spec.http" })
			switch {
			case test.want == "" && i >= 0:
				t.Errorf("told without need: %s", problems[i])
			case test.want != "" && (i < 0 || !strings.Contains(problems[i].Message, test.want)):
				t.Errorf("want %q, got %v", test.want, problems)
			}
		})
	}
}

// TestRoutesOfOtherPorts: routes that name another port say nothing of one without a
// protocol.
func TestRoutesOfOtherPorts(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec:
  hosts: [a.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 7000, name: x}]
  endpoints: [{address: 10.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec:
  hosts: [a]
  http: [{match: [{port: 80}], route: [{destination: {host: a, port: {number: 80}}}]}]
`))
	c := compile.NewCompiler()
	c.Advance(s)
	if list := c.Problems().Unhonoured(); len(list) > 0 {
		t.Error(list)
	}
}
