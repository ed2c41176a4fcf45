package compile

import (
	"testing"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestReader checks what a reader finds in a registry. No computation is around it.
func TestReader(t *testing.T) {
	instance := &mesh.Instance{}
	cart := &mesh.Service{Hostname: "cart.shop.test", Namespace: "shop", Instances: []*mesh.Instance{instance}}
	bank := &mesh.Service{Hostname: "bank.pay.test", Namespace: "pay", ExportTo: []string{"."}}
	m := newModel(mesh.DefaultSettings(), query.NewGraph())
	m.graph.Do(func(r *query.Reader) {
		m.registry.update([]mesh.ServiceChange{{After: cart}, {After: bank}})
		rd := &reader{m, r}
		if got := len(rd.services()); got != 2 {
			t.Errorf("got %d services, want 2", got)
		}
		for _, c := range []struct {
			host, namespace string
			first, seen     *mesh.Service
		}{
			{"cart.shop.test", "shop", cart, cart},
			{"cart.shop.test", "pay", cart, cart},
			{"bank.pay.test", "pay", bank, bank},
			{"bank.pay.test", "shop", bank, nil},
			{"none.shop.test", "shop", nil, nil},
		} {
			if got := rd.service(c.host); got != c.first {
				t.Errorf("service(%s): got %v, want %v", c.host, got, c.first)
			}
			if got := rd.seenBy(c.namespace, c.host); got != c.seen {
				t.Errorf("seenBy(%s, %s): got %v, want %v", c.namespace, c.host, got, c.seen)
			}
			if rd.hasSeveral(c.host) {
				t.Errorf("hasSeveral(%s): got true, want false", c.host)
			}
		}
		if got := rd.instances(cart); len(got) != 1 || got[0] != instance {
			t.Errorf("instances: got %v, want the one of cart", got)
		}
	})
}

// TestReaderDepends checks that a computation runs again after a change of what it
// read, and only then.
func TestReaderDepends(t *testing.T) {
	m := newModel(mesh.DefaultSettings(), query.NewGraph())
	runs := 0
	found := query.New(m.graph, equal, func(r *query.Reader, host string) bool {
		runs++
		return (&reader{m, r}).registered(host) != nil
	})
	for _, c := range []struct {
		added string
		found bool
		runs  int
	}{
		{"other.shop.test", false, 1},
		{"third.shop.test", false, 1},
		{"cart.shop.test", true, 2},
		{"fourth.shop.test", true, 2},
	} {
		m.graph.Do(func(r *query.Reader) {
			m.registry.update([]mesh.ServiceChange{{After: &mesh.Service{Hostname: c.added, Namespace: "shop"}}})
			if got := found.Get(r, "cart.shop.test"); got != c.found || runs != c.runs {
				t.Errorf("after %s: got %v in %d runs, want %v in %d", c.added, got, runs, c.found, c.runs)
			}
			found.Keep(r, "cart.shop.test")
		})
	}
}
