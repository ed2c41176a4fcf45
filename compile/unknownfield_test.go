package compile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// TestConditionsOfAnotherVersion: a condition that this version does not know, in an
// object that another version stored, closes what the rest of the match takes, and
// nothing else. To leave the condition out would let in whom it keeps out.
func TestConditionsOfAnotherVersion(t *testing.T) {
	const host = "shop.default.svc.cluster.local"
	service := objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop}
spec:
  hosts: [shop.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 10.1.0.7}]
`)
	to := `"route":[{"destination":{"host":"` + host + `","port":{"number":443}}}]`
	for name, c := range map[string]struct {
		kind, spec, node string
		// want and never are texts that the configuration has and has not: where
		// requests go on, and where they may not go.
		want, never string
		field       string // of the problem; "" for none
	}{
		"HTTP": {"VirtualService", `{"hosts":["` + host + `"],"http":[{"match":[{"uri":{"prefix":"/a"},"mood":{"exact":"good"}}],"redirect":{"authority":"in.example"}},{"redirect":{"authority":"rest.example"}}]}`,
			webNode, "rest.example", "in.example", "spec.http[0].match[0].mood"},
		"HTTP, alone": {"VirtualService", `{"hosts":["` + host + `"],"http":[{"match":[{"mood":{"exact":"good"}}],"redirect":{"authority":"in.example"}}]}`,
			webNode, `"Status":503`, "in.example", "spec.http[0].match[0].mood"},
		"within a condition": {"VirtualService", `{"hosts":["` + host + `"],"http":[{"match":[{"headers":{"x":{"suffix":"b"}}}],"redirect":{"authority":"in.example"}}]}`,
			webNode, `"Status":503`, "in.example", "spec.http[0].match[0].headers.x.suffix"},
		"TLS": {"VirtualService", `{"hosts":["` + host + `"],"tls":[{"match":[{"sniHosts":["` + host + `"],"alpn":["h2"]}],` + to + `}]}`,
			webNode, "out." + host + "|no-such-port-443", `"Name":"out.` + host + `|tls"`, "spec.tls[0].match[0].alpn"},
		"RouteRule": {"RouteRule", `{"destination":{"name":"shop"},"match":{"request":{"headers":{"x":{"exact":"y"}},"mood":"good"}},"redirect":{"authority":"in.example"}}`,
			webNode, `"Status":503`, "in.example", "spec.match.request.mood"},
		"Gateway": {"Gateway", `{"servers":[{"port":{"number":8443,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","serverCertificate":"/c","privateKey":"/k","pins":["x"]}}]}`,
			"router~10.1.0.1~edge.default~default.svc.cluster.local", "", "8443", "spec.servers[0].tls.pins"},
		"Gateway, known": {"Gateway", `{"servers":[{"port":{"number":8443,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","serverCertificate":"/c","privateKey":"/k"}}]}`,
			"router~10.1.0.1~edge.default~default.svc.cluster.local", "8443", "pins", ""},
		"of no condition": {"VirtualService", `{"hosts":["` + host + `"],"http":[{"match":[{"uri":{"prefix":"/a"}}],"redirect":{"authority":"in.example"},"patience":"3s"}]}`,
			webNode, "in.example", `"Status":503`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := schema.KindByName(c.kind)
			rule, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: "rule"}, json.RawMessage(c.spec))
			if err != nil {
				t.Fatal(err)
			}
			config, problems := compiled(t, c.node, append(slices.Clone(service), rule))
			text, err := json.Marshal(struct{ Listeners, RouteTables any }{config.Listeners, config.RouteTables})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), c.want) || strings.Contains(string(text), c.never) {
				t.Errorf("want %q and not %q in\n%s", c.want, c.never, text)
			}
			told := func(p diag.Problem) bool { return p.Object == rule.Key().Ref() && p.Field == c.field && p.Unhonoured() }
			if c.field != "" && !slices.ContainsFunc(problems, told) {
				t.Errorf("no problem of %s in\n%v", c.field, problems)
			}
		})
	}
}

const webNode = "sidecar~10.1.0.9~web.default~default.svc.cluster.local"
