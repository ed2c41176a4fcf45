package mesh_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestNewNodeHasBounds(t *testing.T) {
	long := mesh.Labels{}
	for _, c := range "abcdefghijklmnopqrst" {
		long[strings.Repeat("d", 250)+"/"+strings.Repeat(string(c), 20)] = "v"
	}
	for _, c := range []struct {
		namespace string
		labels    mesh.Labels
		want      string
	}{
		{"Shop", nil, `namespace "Shop": `},
		{strings.Repeat("a", 100), nil, `namespace "` + strings.Repeat("a", 80) + `"…: `},
		{"", mesh.Labels{"a=b": ""}, `label name "a=b": `},
		{"", mesh.Labels{"a": "-"}, `value "-" of label a: `},
		{"", long, "labels of 5479 bytes, at most 4096 are allowed"},
	} {
		if _, err := mesh.NewNode("n", c.namespace, c.labels); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestStatedNamespace is that of the proxy, whatever its domain says.
func TestStatedNamespace(t *testing.T) {
	s := snapshot(t, `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: default}
spec: {outboundTrafficPolicy: {mode: ALLOW_ANY}}
`)
	for _, c := range []struct{ domain, namespace, want string }{
		{"default.svc.cluster.local", "", "default.svc.cluster.local"},
		{"default.svc.cluster.local", "default", "default.svc.cluster.local"},
		{"elsewhere", "default", "default.svc.cluster.local"},
		{"default.svc.cluster.local", "nowhere", "svc.cluster.local"},
	} {
		node, err := mesh.NewNode("sidecar~10.0.0.1~a~"+c.domain, c.namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := node.Proxy()
		if err != nil || s.View(p).Domain != c.want {
			t.Errorf("%s in %q: %s, %v; want %s", c.domain, c.namespace, s.View(p).Domain, err, c.want)
		}
	}
}
