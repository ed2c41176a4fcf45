package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const rootsObjects = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews}
spec:
  hosts: [reviews.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.7, labels: {security.istio.io/tlsMode: istio}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ratings}
spec:
  hosts: [ratings.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.8}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: ratings}
spec: {host: ratings.example, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: ["reviews.example"], tls: {mode: ISTIO_MUTUAL}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge}
spec: {hosts: [reviews.example], gateways: [edge], http: [{route: [{destination: {host: reviews.example}}]}]}
`

// TestTheRootsAreASecret checks that all mutual TLS of a mesh with sdsFile names the roots of the
// server, that new roots come under the same name, and that revocations change the name.
func TestTheRootsAreASecret(t *testing.T) {
	settings, problems := mesh.ParseSettings([]byte("workloadCertificates: {sdsFile: /etc/mesh/default.yaml}"), "settings")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var objects []*schema.Object
	for text := range strings.SplitSeq(rootsObjects, "---") {
		o, problems := schema.Decode([]byte(text), schema.Options{})
		if o == nil {
			t.Fatal(problems)
		}
		objects = append(objects, o)
	}
	c := compile.NewCompiler()
	before := mesh.NewSnapshot(1, settings, objects)
	look := func(roots mesh.Roots) (used, sent []string, problems string) {
		next := before.Next(1, nil).WithFiles(before.Files.WithRoots(roots))
		before = next
		c.Advance(next)
		for _, node := range []string{"sidecar~10.0.0.7~reviews-1.default~default.svc.cluster.local", "router~10.0.0.9~edge-1.default~default.svc.cluster.local"} {
			config, _ := c.Proxy(next.TraitsOf(proxy(t, node)))
			for _, l := range config.Listeners {
				for _, tls := range tlsOf(l) {
					used = append(used, tls.SecretName+" in "+tls.SDS.File+", "+tls.Client.CASecretName)
				}
			}
			for _, cluster := range config.Clusters {
				for _, tls := range []*ir.ClientTLS{cluster.TLS, cluster.MutualTLS} {
					if tls != nil {
						used = append(used, tls.SecretName+" in "+tls.SDS.File+", "+tls.CASecretName)
					}
				}
			}
			for _, s := range config.Secrets {
				sent = append(sent, s.Name+": "+s.CACertificates+s.Revoked)
			}
		}
		for _, p := range c.Problems() {
			problems += p.String() + "\n"
		}
		return used, slices.Compact(sent), problems
	}
	for _, step := range []struct {
		roots mesh.Roots
		name  string
		sent  []string
	}{
		{mesh.Roots{}, "ROOTCA", nil},
		{mesh.Roots{Certificates: "A"}, "ROOTCA", []string{"ROOTCA: A"}},
		{mesh.Roots{Certificates: "A+B"}, "ROOTCA", []string{"ROOTCA: A+B"}},
		{mesh.Roots{Certificates: "A+B", Revoked: " without C", Revocations: 1}, "ROOTCA-1", []string{"ROOTCA-1: A+B without C"}},
		{mesh.Roots{Certificates: "B", Revoked: " without C", Revocations: 1}, "ROOTCA-1", []string{"ROOTCA-1: B without C"}},
	} {
		used, sent, problems := look(step.roots)
		if want := "default in /etc/mesh/default.yaml, " + step.name; len(used) < 6 || slices.ContainsFunc(used, func(s string) bool { return s != want }) {
			t.Errorf("%+v: TLS by %q, want 6 or more of %q", step.roots, used, want)
		}
		if !slices.Equal(sent, step.sent) {
			t.Errorf("%+v: sent %q, want %q", step.roots, sent, step.sent)
		}
		if none := step.roots.Certificates == ""; strings.Contains(problems, "has no certificate authority") != none {
			t.Errorf("%+v: problems %s", step.roots, problems)
		}
	}
}

// tlsOf returns all TLS of a listener.
func tlsOf(l *ir.Listener) (all []*ir.ServerTLS) {
	if l.TLS != nil {
		all = append(all, l.TLS)
	}
	for _, chain := range l.Chains {
		if chain.TLS != nil {
			all = append(all, chain.TLS)
		}
	}
	return all
}

// TestAnAuthorityThatCannotSign checks that it is a problem, and that proxies keep its roots.
func TestAnAuthorityThatCannotSign(t *testing.T) {
	settings, problems := mesh.ParseSettings([]byte("workloadCertificates: {sdsFile: /etc/mesh/default.yaml}"), "settings")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	found := func(roots mesh.Roots) string {
		snapshot := mesh.NewSnapshot(1, settings, nil).WithFiles(mesh.NewFileSecrets(nil).WithRoots(roots))
		c := compile.NewCompiler()
		c.Advance(snapshot)
		return fmt.Sprint(c.Problems())
	}
	if with := found(mesh.Roots{Certificates: "A", Lack: "its key is lost"}); !strings.Contains(with, "workloads get no certificates from this server, and those that they have will end: its key is lost") {
		t.Errorf("problems: %s", with)
	}
	if without := found(mesh.Roots{Certificates: "A"}); strings.Contains(without, "workloads get no certificates") {
		t.Errorf("problems of an authority that signs: %s", without)
	}
}
