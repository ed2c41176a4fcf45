package mesh_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestInstancesOfOtherNamespaces: an endpoint at the address of a proxy gives it labels
// and ports only if its service is in the proxy's namespace or the root namespace.
func TestInstancesOfOtherNamespaces(t *testing.T) {
	const entry = "---\nkind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: se, namespace: %[1]s}\n" +
		"spec: {hosts: [%[1]s.example], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http, protocol: HTTP}], " +
		"endpoints: [{address: 10.0.0.1, labels: {from: %[1]s}}]}\n"
	text := ""
	for _, namespace := range []string{"own", "evil", "istio-system"} {
		text += fmt.Sprintf(entry, namespace)
	}
	for _, tc := range []struct {
		node string
		want int
	}{
		{"sidecar~10.0.0.1~x~own.svc.cluster.local", 2},
		{"sidecar~10.0.0.1~x~idle.svc.cluster.local", 1},
		{"sidecar~10.0.0.1~x~elsewhere.example", 3}, // Its namespace is not known.
		{"sidecar~10.0.0.2~x~own.svc.cluster.local", 0},
	} {
		p, err := mesh.ParseProxy(tc.node)
		if err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, text).TraitsOf(p).Instances; len(got) != tc.want {
			t.Errorf("%s has %d instances, want %d: %v", tc.node, len(got), tc.want, got)
		}
	}
}
