package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/diag"
)

// TestNotHonoured: what no proxy follows is told to whoever writes it, with its
// place, and again of the object as it is stored.
func TestNotHonoured(t *testing.T) {
	const (
		virtual     = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec:\n  hosts: [a]\n"
		destination = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: x}\nspec:\n  host: a\n"
		gateway     = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: x}\nspec:\n"
	)
	for name, tc := range map[string]struct {
		text string
		want string // what the field ends in
	}{
		"claim":               {virtual + "  gateways: [g]\n  http: [{match: [{headers: {\"@request.auth.claims.a\": {exact: b}}}], route: [{destination: {host: a}}]}]\n", "headers[@request.auth.claims.a]"},
		"no empty value":      {virtual + "  http: [{match: [{withoutHeaders: {a: {regex: \"b*\"}}}], route: [{destination: {host: a}}]}]\n", "withoutHeaders.a"},
		"redirect code":       {virtual + "  http: [{redirect: {uri: /a, redirectCode: 305}}]\n", "http[0].redirect"},
		"substitution":        {virtual + "  http: [{rewrite: {uriRegexRewrite: {match: a, rewrite: '\\2'}}, route: [{destination: {host: a}}]}]\n", "uriRegexRewrite"},
		"revocation":          {destination + "  trafficPolicy: {tls: {mode: SIMPLE, caCrl: c, insecureSkipVerify: true}}\n", "tls.caCrl"},
		"port level":          {destination + "  trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE, caCrl: c, insecureSkipVerify: true}}]}\n", "portLevelSettings[0].tls.caCrl"},
		"subset":              {destination + "  subsets: [{name: v, labels: {a: b}, trafficPolicy: {tls: {mode: SIMPLE, caCrl: c, insecureSkipVerify: true}}}]\n", "subsets[0].trafficPolicy.tls.caCrl"},
		"gateway":             {gateway + "  servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, credentialName: c, cipherSuites: [RC4-SHA]}}]\n", "servers[0].tls.cipherSuites"},
		"gateway certificate": {gateway + "  servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: MUTUAL, caCertificates: /a, tlsCertificates: [{serverCertificate: /b, privateKey: /c, caCertificates: /d}]}}]\n", "tlsCertificates[0].caCertificates"},
	} {
		t.Run(name, func(t *testing.T) {
			o, list := Decode([]byte(tc.text), Options{File: "x.yaml"})
			if o == nil {
				t.Fatal(list)
			}
			told := func(p diag.Problem) bool { return strings.HasSuffix(p.Field, tc.want) }
			i := slices.IndexFunc(list, told)
			if i < 0 {
				t.Fatalf("nobody is warned: %v", list)
			}
			if list[i].Position == nil || list[i].Severity != diag.Warning {
				t.Errorf("want a warning with its place, got %+v", list[i])
			}
			warned := slices.DeleteFunc(slices.Clone(list), func(p diag.Problem) bool { return !told(p) })
			stored := slices.DeleteFunc(OwnOf(o).Warnings, func(p diag.Problem) bool { return !told(p) })
			for i := range warned {
				warned[i].Position = nil
			}
			if d := cmp.Diff(warned, stored); d != "" {
				t.Errorf("told otherwise of what is stored (-warned +stored):\n%s", d)
			}
		})
	}
}
