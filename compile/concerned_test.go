package compile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// spaces is a mesh whose views are in namespaces of their own, and what they
// have been told.
type spaces struct {
	compiler *compile.Compiler
	snap     *mesh.Snapshot
	views    []mesh.Proxy
	configs  []*ir.Config
	runs     int64
}

func newSpaces(t testing.TB, views int, objs []*schema.Object) *spaces {
	m := &spaces{compiler: compile.NewCompiler()}
	for i := range views {
		objs = append(objs, objectIn(t, fmt.Sprintf("space-%d", i), "DestinationRule", "of", spec{"host": "nobody.example", "exportTo": []string{"."}}))
		m.views = append(m.views, proxy(t, fmt.Sprintf("sidecar~10.99.0.1~p.x~space-%d.svc.cluster.local", i)))
	}
	m.snap = mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	m.compiler.Advance(m.snap)
	m.compiler.Problems()
	for i := range m.views {
		m.configs = append(m.configs, m.config(i))
	}
	return m
}

func (m *spaces) config(i int) *ir.Config {
	config, _ := m.compiler.Proxy(m.snap.TraitsOf(m.views[i]))
	return config
}

func (m *spaces) change(before, after *schema.Object) {
	m.snap = m.snap.Next(m.snap.Revision+1, []schema.Change{{Before: before, After: after}})
	m.runs = m.compiler.Runs()
	m.compiler.Advance(m.snap)
}

// concerned are the views that may have changed; all the others are asked too,
// and must cost nothing.
func (m *spaces) concerned(t *testing.T) (views []int) {
	t.Helper()
	m.compiler.Problems()
	keys := m.compiler.Concerned()
	for i, p := range m.views {
		if slices.Contains(keys, m.snap.TraitsOf(p).Key()) {
			views = append(views, i)
			continue
		}
		runs := m.compiler.Runs()
		if m.config(i) != m.configs[i] {
			t.Errorf("the configuration of view %d is another one, and it was not concerned", i)
		}
		if n := m.compiler.Runs() - runs; n != 0 {
			t.Errorf("%d results were computed for view %d, which is not concerned", n, i)
		}
	}
	return views
}

func (m *spaces) compile(views []int) (changed []int) {
	for _, i := range views {
		config := m.config(i)
		if config != m.configs[i] {
			changed = append(changed, i)
		}
		m.configs[i] = config
	}
	return changed
}

func namesOf(namespaces []int) (out []string) {
	for _, i := range namespaces {
		out = append(out, fmt.Sprintf("space-%d", i))
	}
	return out
}

// TestScopedChange: a rule that is for callers of a few namespaces changes, and
// nothing at all is looked at for the views of others. It costs the same in a
// mesh of more services and views.
func TestScopedChange(t *testing.T) {
	few := []int{2, 3, 5, 7}
	for _, kind := range []string{"VirtualService", "DestinationRule"} {
		var runs []int64
		for _, size := range []int{10, 40} {
			scoped := func(step int) *schema.Object {
				host := "service-0001.default.svc.cluster.local"
				if kind == "DestinationRule" {
					return object(t, kind, "scoped", spec{"host": host, "exportTo": namesOf(few),
						"trafficPolicy": spec{"connectionPool": spec{"tcp": spec{"maxConnections": step}}}})
				}
				return object(t, kind, "scoped", spec{"hosts": []string{host}, "exportTo": namesOf(few),
					"http": []spec{{"timeout": fmt.Sprintf("%ds", step), "route": []spec{{"destination": spec{"host": host}}}}}})
			}
			last := scoped(1)
			m := newSpaces(t, size, append(largeMesh(t, size), last))
			next := scoped(2)
			m.change(last, next)
			views := m.concerned(t)
			if changed := m.compile(views); !slices.Equal(views, few) || !slices.Equal(changed, few) {
				t.Errorf("%s: of %d views %v are concerned and %v others now, want %v", kind, size, views, changed, few)
			}
			runs = append(runs, m.compiler.Runs()-m.runs)
		}
		if runs[0] != runs[1] {
			t.Errorf("%s: a change takes %d computations in a small mesh and %d in a larger one", kind, runs[0], runs[1])
		}
	}
}

// TestSidecarScopes: a change of what a Sidecar leaves out concerns none of its
// proxies.
func TestSidecarScopes(t *testing.T) {
	const views = 6
	objs := largeMesh(t, 10)
	for i := range views {
		host := fmt.Sprintf("*/service-000%d.default.svc.cluster.local", i%3)
		objs = append(objs, objectIn(t, fmt.Sprintf("space-%d", i), "Sidecar", "few", spec{"egress": []spec{{"hosts": []string{host}}}}))
	}
	m := newSpaces(t, views, objs)
	rule := objs[3]
	m.change(rule, object(t, "RouteRule", rule.Meta.Name, spec{"destination": spec{"name": rule.Meta.Name}, "rewrite": spec{"uri": "/other"}}))
	concerned := m.concerned(t)
	if changed := m.compile(concerned); !slices.Equal(concerned, []int{1, 4}) || !slices.Equal(changed, concerned) {
		t.Errorf("%v are concerned and %v others now, want views 1 and 4", concerned, changed)
	}
	entry := objs[0]
	more := decoded(t, entry)
	more["ports"] = append(more["ports"].([]any), spec{"number": 82, "name": "http-more", "protocol": "HTTP"})
	m.change(entry, object(t, "ServiceEntry", entry.Meta.Name, more))
	concerned = m.concerned(t)
	if changed := m.compile(concerned); !slices.Equal(concerned, []int{0, 3}) || !slices.Equal(changed, concerned) {
		t.Errorf("%v are concerned and %v others now, want views 0 and 3", concerned, changed)
	}
}

// TestGrowth: a change of one route costs hardly more in a mesh of ten times the
// services, also where all callers have the route.
func TestGrowth(t *testing.T) {
	reads := func(services int) int64 {
		objs := largeMesh(t, services)
		m := newSpaces(t, 3, objs)
		rule := objs[1]
		m.change(rule, object(t, "RouteRule", rule.Meta.Name, spec{"destination": spec{"name": rule.Meta.Name}, "rewrite": spec{"uri": "/other"}}))
		before := m.compiler.Reads()
		if changed := m.compile([]int{0, 1, 2}); len(changed) != 3 {
			t.Fatalf("%v changed, want all views", changed)
		}
		m.compiler.Problems()
		return m.compiler.Reads() - before
	}
	if small, large := reads(100), reads(1000); large > 2*small {
		t.Errorf("%d values are read for a change of one route, and %d in a mesh of ten times the services", small, large)
	}
}

// TestFurtherNamespace: callers of one namespace more know the mesh as those of
// others do, and what they share is not made again.
func TestFurtherNamespace(t *testing.T) {
	const services = 400
	m := newSpaces(t, 3, largeMesh(t, services))
	further := m.snap.TraitsOf(proxy(t, "sidecar~10.99.0.1~p.x~space-1.svc.cluster.local"))
	m.compiler.Release(further.Key(), unwanted)
	runs := m.compiler.Runs()
	config, _ := m.compiler.Proxy(further)
	if n := m.compiler.Runs() - runs; n > 10 {
		t.Errorf("%d results were computed for %d services", n, services)
	}
	if !slices.Equal(config.RouteTables, m.configs[0].RouteTables) {
		t.Error("route tables are others than those of another namespace")
	}
	m.compiler.Release(further.Key(), unwanted)
	allocations := testing.AllocsPerRun(5, func() {
		m.compiler.Proxy(further)
		m.compiler.Release(further.Key(), unwanted)
	})
	if allocations > services {
		t.Errorf("a further view takes %.0f allocations, more than there are services", allocations)
	}
}

// BenchmarkFurtherNamespace compiles a view for a namespace that none was for.
func BenchmarkFurtherNamespace(b *testing.B) {
	for _, services := range []int{1_000, 10_000} {
		m := newSpaces(b, 3, largeMesh(b, services))
		further := m.snap.TraitsOf(proxy(b, "sidecar~10.99.0.1~p.x~space-1.svc.cluster.local"))
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.compiler.Release(further.Key(), unwanted)
				m.compiler.Proxy(further)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*services), "ns/port")
		})
	}
}
