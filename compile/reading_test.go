package compile

import (
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestObjectsAreReadOnce: what was read of an object is the same for all compilers
// with the same settings, and of one under other settings or metadata it is not.
func TestObjectsAreReadOnce(t *testing.T) {
	kind, _ := schema.KindByName("RouteRule")
	o, err := schema.New(kind, metav1.ObjectMeta{Name: "a", Namespace: "default"}, []byte(`{"destination":{"name":"b"}}`))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := o.WithMeta(metav1.ObjectMeta{Name: "a", Namespace: "other"})
	if err != nil {
		t.Fatal(err)
	}
	var compilers []*Compiler // What none of them has any more may be read again.
	read := func(settings *mesh.Settings, o *schema.Object) *routeRule {
		c := NewCompiler()
		c.Advance(mesh.NewSnapshot(1, settings, []*schema.Object{o}))
		compilers = append(compilers, c)
		return c.model.routeRules.readings[o.Key()].rule
	}
	settings, others := mesh.DefaultSettings(), mesh.DefaultSettings()
	others.Domain = "example.com"
	first := read(settings, o)
	if read(settings, o) != first {
		t.Error("it was read twice")
	}
	for _, c := range []struct {
		host string
		is   *routeRule
	}{
		{"b.default.svc.cluster.local", first},
		{"b.default.svc.example.com", read(others, o)},
		{"b.other.svc.cluster.local", read(settings, moved)},
		{"b.default.svc.cluster.local", read(settings, o)},
	} {
		if c.is.host != c.host {
			t.Errorf("the rule is for %s, want %s", c.is.host, c.host)
		}
	}
	runtime.KeepAlive(compilers)
}
