package meshgen

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/mesh"
)

// Nodes are identities of proxies of every role. Some sidecars are beside an endpoint
// that objects declare, some are not.
var Nodes = []string{
	"sidecar~10.1.0.1~x~default.svc.cluster.local",
	"sidecar~10.1.0.2~x~example.com",
	"sidecar~10.7.7.7~x~",
	"router~10.7.7.8~x~default.svc.cluster.local",
	"ingress~10.7.7.9~x~default.svc.cluster.local",
}

// Proxies are the Nodes, and some that declare their labels and namespace.
var Proxies = slices.Concat(Nodes, []string{
	"sidecar~10.1.0.1~x~default.svc.cluster.local labels=v=2",
	"sidecar~10.7.7.7~x~default.svc.cluster.local labels=v=1,x=y",
	"sidecar~10.7.7.7~x~ namespace=default",
	"router~10.7.7.8~x~default.svc.cluster.local labels=istio=ingressgateway,v=2",
	"router~10.1.0.1~x~default.svc.cluster.local",
})

// Proxy returns the proxy for a text. See Node.
func Proxy(t rapid.TB, text string) mesh.Proxy {
	t.Helper()
	p, err := Node(t, text).Proxy()
	if err != nil {
		t.Fatalf("bad test input: %v", err)
	}
	return p
}

// Node returns the node for a text: its id and, if declared, labels and a namespace.
func Node(t rapid.TB, text string) mesh.Node {
	t.Helper()
	id, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	node := mesh.Node{ID: id}
	for _, stated := range strings.Fields(rest) {
		switch name, value, _ := strings.Cut(stated, "="); name {
		case "labels":
			node.Labels = value
		case "namespace":
			node.Namespace = value
		default:
			t.Fatalf("bad test input: %q of %q", stated, text)
		}
	}
	return node
}
