package compile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestSecurityMeshPage checks that the objects and settings of docs/security-mesh.md are valid,
// have no problems together, and do what the page says.
func TestSecurityMeshPage(t *testing.T) {
	page, err := os.ReadFile("../docs/security-mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*schema.Object
	settings := mesh.DefaultSettings()
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	for _, block := range append(blocks, securityService+"```") {
		text, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(text, "apiVersion") {
			parsed, problems := mesh.ParseSettings([]byte(text), "settings")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			settings = parsed
			continue
		}
		o, problems := schema.Decode([]byte(text), schema.Options{})
		if len(problems) > 0 {
			t.Fatalf("%s\n%v", text, problems)
		}
		objects = append(objects, o)
	}
	s := mesh.NewSnapshot(1, settings, objects).WithFiles(mesh.NewFileSecrets(nil).WithRoots(mesh.Roots{Certificates: "roots"}))
	config, problems := compile.Proxy(s, s.TraitsOf(proxy(t, "sidecar~10.0.0.7~reviews-1.default~default.svc.cluster.local")))
	if len(problems)+len(s.Problems) > 0 {
		t.Errorf("problems: %v %v", problems, s.Problems)
	}
	for _, l := range config.ListenersAt("10.0.0.7") {
		if l.Direction != ir.Inbound {
			continue
		}
		if l.TLS == nil || l.TLS.SDS.File != "/etc/mesh/default.yaml" || l.TLS.Client.URIPrefix != "spiffe://mesh.example/" {
			t.Errorf("the port of the workload takes %+v, want mutual TLS only", l.TLS)
		}
		if a := l.HTTP.Access; a == nil || len(a.Steps) != 2 || a.Steps[0].Action != ir.Deny || a.Steps[1].Action != ir.Allow || len(a.Steps[1].Policies) != 1 {
			t.Errorf("who may call: %+v, want one rule that denies and one that allows", l.HTTP.Access)
		}
		if l.HTTP.Tokens == nil || l.HTTP.Tokens.Rules[0].Issuer != "https://login.example.com" {
			t.Errorf("tokens: %+v", l.HTTP.Tokens)
		}
	}
	found := false
	for _, c := range config.Clusters {
		if strings.HasPrefix(c.Name, "out.reviews") {
			found = c.MutualTLS != nil && c.MutualTLS.SubjectAltNames[0] == "spiffe://mesh.example/ns/default/sa/reviews"
		}
	}
	if !found {
		t.Error("callers do not use mutual TLS")
	}
}

// securityService is the service of the page's workload.
const securityService = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews}
spec:
  hosts: [reviews.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: reviews}}
`
