package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestWarningsStay: what the writer of an object is warned of is a problem of the stored
// object, whatever its kind.
func TestWarningsStay(t *testing.T) {
	const networking = "apiVersion: networking.istio.io/v1\n"
	const old = "apiVersion: config.istio.io/v1alpha2\n"
	for kind, text := range map[string]string{
		"VirtualService":    networking + "spec: {hosts: [a], http: [{match: [{uri: {exact: /a/../b}}], directResponse: {status: 403}}, {rewrite: {uri: '/b?c'}, route: [{destination: {host: a}}]}]}",
		"DestinationRule":   networking + "spec: {host: a, workloadSelector: {}, trafficPolicy: {loadBalancer: {consistentHash: {minimumRingSize: 1}}}}",
		"Gateway":           networking + "spec: {servers: [{port: {number: 81, name: tls, protocol: TLS}, hosts: [a.example], tls: {mode: PASSTHROUGH, httpsRedirect: true}}]}",
		"Sidecar":           networking + "spec: {inboundConnectionPool: {tcp: {maxConnections: 1}}, egress: [{hosts: ['*/*']}]}",
		"ServiceEntry":      networking + "spec: {hosts: [a.example], resolution: NONE, ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: {a: b}}}",
		"WorkloadEntry":     networking + "spec: {address: 10.0.0.1}",
		"RouteRule":         old + "spec: {destination: {name: a}, httpFault: {abort: {httpStatus: 500}}}",
		"DestinationPolicy": old + "spec: {destination: {name: a}, custom: {}}",
		"EgressRule":        old + "spec: {destination: {service: a.example}, ports: [{port: 80, protocol: tcp}]}",
		"IngressRule":       old + "spec: {destination: {name: a}, precedence: 1, match: {request: {headers: {x: {exact: y}}}}}",
	} {
		t.Run(kind, func(t *testing.T) {
			o, told := schema.Decode([]byte(text+"\nkind: "+kind+"\nmetadata: {name: x, annotations: {"+schema.HealthCheckAnnotation+": '{tcp: {}}'}}\n"), schema.Options{})
			if o == nil {
				t.Fatal(told)
			}
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{o})
			c := NewCompiler()
			c.Advance(s)
			stored := append(slices.Clone(s.Problems), c.Problems()...)
			if len(told) == 0 {
				t.Error("its writer is warned of nothing")
			}
			for _, p := range told {
				p.Position = nil
				known := func(q diag.Problem) bool {
					return q == p || q.Code == p.Code && strings.HasPrefix(p.Field, q.Field)
				}
				if !slices.ContainsFunc(stored, known) {
					t.Errorf("nobody is told later: %s\n%v", p.Coded(), stored)
				}
			}
		})
	}
}
