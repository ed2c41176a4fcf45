package fleet

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestServicesOfOneHostChangeTurns: two services of a host have an instance at
// one address. When the younger becomes the older, the proxy there has another
// view, and its address is among those that changed.
func TestServicesOfOneHostChangeTurns(t *testing.T) {
	kind, _ := schema.KindByName("ServiceEntry")
	entry := func(namespace string, year int) *schema.Object {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "db", CreationTimestamp: metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))}
		o, err := schema.New(kind, meta, fmt.Appendf(nil, `{"hosts":["db.example"],"exportTo":["."],"location":"MESH_INTERNAL","resolution":"STATIC",
			"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.0.0.1","labels":{"in":%q}}]}`, namespace))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	a, b := entry("a", 2020), entry("b", 2021)
	before := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{a, b})
	next := before.Next(2, []schema.Change{{Before: a, After: entry("a", 2022)}})
	proxy := mesh.Proxy{Role: mesh.Sidecar, IP: "10.0.0.1", Domain: "elsewhere.example"} // It has the instances of all namespaces.
	if before.TraitsOf(proxy).Key() == next.TraitsOf(proxy).Key() {
		t.Fatal("the view is the same")
	}
	if found := changedAddresses(before, next); !found["10.0.0.1"] {
		t.Errorf("changed are %v", found)
	}
}
