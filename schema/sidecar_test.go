package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

// TestSidecar: what Istio refuses is refused, and what no proxy follows is said.
func TestSidecar(t *testing.T) {
	const egress, ingress = "  egress:\n  - ", "  ingress:\n  - "
	for text, want := range map[string]string{ // "" for nothing, "warn:" before a warning.
		egress + "{hosts: [./*, '*/*', '~/*', shop/*.example.com, '*/A.example.com']}\n": "",
		"  {}\n":                        "spec",
		egress + "{hosts: [reviews]}\n": "spec.egress[0].hosts[0]",
		egress + "{hosts: []}\n":        "spec.egress[0].hosts",
		egress + "{hosts: [./*]}\n  - {hosts: [./*]}\n":                                                              "spec.egress[0].port",
		egress + "{bind: 127.0.0.1, hosts: [./*]}\n":                                                                 "spec.egress[0].bind",
		egress + "{port: {protocol: HTTP}, hosts: [./*]}\n":                                                          "spec.egress[0].port.number",
		egress + "{port: {number: 0}, bind: 'unix:///a', hosts: [./*]}\n":                                            "warn:spec.egress[0].bind",
		egress + "{port: {number: 80}, bind: 'unix:///a', hosts: [./*]}\n":                                           "spec.egress[0].port.number",
		egress + "{port: {number: 80, protocol: TCP}, captureMode: NONE, hosts: [./*]}\n":                            "warn:spec.egress[0].captureMode",
		ingress + "{port: {number: 80, protocol: HTTP}, defaultEndpoint: '[::]:80'}\n":                               "",
		ingress + "{port: {number: 80, protocol: HTTP}, defaultEndpoint: 10.0.0.1:80}\n":                             "spec.ingress[0].defaultEndpoint",
		ingress + "{port: {number: 80, protocol: HTTP}, defaultEndpoint: 'unix://a'}\n":                              "spec.ingress[0].defaultEndpoint",
		ingress + "{port: {number: 80, protocol: HTTP}}\n  - {port: {number: 80, protocol: TCP}}\n":                  "spec.ingress[1].port.number",
		ingress + "{port: {number: 80, protocol: HTTP}, bind: nowhere}\n":                                            "spec.ingress[0].bind",
		ingress + "{port: {number: 80, protocol: HTTP}, tls: {mode: SIMPLE, serverCertificate: a, privateKey: b}}\n": "warn:spec.ingress[0].tls",
		ingress + "{port: {number: 80, protocol: HTTP, targetPort: 8080}}\n":                                         "warn:spec.ingress[0].port.targetPort",
		egress + "{port: {number: 80, protocol: HTTP, targetPort: 8080}, hosts: [./*]}\n":                            "warn:spec.egress[0].port.targetPort",
		"  outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: a.example}}\n":                               "warn:spec.outboundTrafficPolicy.egressProxy",
	} {
		_, list := Decode([]byte("apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: x}\nspec:\n"+text), Options{File: "x.yaml"})
		severity := diag.Error
		field, warning := strings.CutPrefix(want, "warn:")
		if warning {
			severity = diag.Warning
		}
		told := slices.ContainsFunc(list, func(p diag.Problem) bool { return p.Field == field && p.Severity == severity })
		if want == "" && len(list) > 0 || want != "" && !told || warning && list.Err() != nil {
			t.Errorf("%swant %q, found %v", text, want, list)
		}
	}
}
