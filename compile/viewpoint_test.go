package compile

import (
	"testing"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestViewpoint checks what callers of a domain see. Nothing is reported and nothing
// is written.
func TestViewpoint(t *testing.T) {
	settings := mesh.DefaultSettings()
	m := newModel(settings, query.NewGraph())
	host := func(name, namespace string) string { return name + "." + m.homeOf(namespace) }
	open := &mesh.Service{Hostname: host("cart", "shop"), Namespace: "shop"}
	private := &mesh.Service{Hostname: host("bank", "pay"), Namespace: "pay", ExportTo: []string{"."}}
	m.graph.Do(func(r *query.Reader) {
		m.registry.update([]mesh.ServiceChange{{After: open}, {After: private}})
		for _, c := range []struct {
			callers, name string
			seen          *mesh.Service
			owner         string
		}{
			{"shop", "cart", open, "shop"},
			{"shop", host("cart", "shop"), open, "shop"},
			{"pay", host("cart", "shop"), open, "shop"},
			{"pay", "bank", private, "pay"},
			{"shop", host("bank", "pay"), nil, "pay"},
			{"pay", "cart", nil, "pay"},
			{"pay", "example.com", nil, ""},
		} {
			v := (&reader{m, r}).home(c.callers)
			full := v.complete(c.name, c.callers)
			if got := v.service(full); got != c.seen {
				t.Errorf("callers in %s, %s: got %v, want %v", c.callers, c.name, got, c.seen)
			}
			if got := v.ownerOf(full); got != c.owner {
				t.Errorf("owner of %s: got %q, want %q", full, got, c.owner)
			}
		}
	})
}
