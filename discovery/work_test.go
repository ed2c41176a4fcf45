package discovery_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// work is what one change costs, in counts that are the same on any machine.
type work struct {
	views    int   // compiled
	results  int64 // computed by the compiler
	messages int64 // encoded for answers
	allocs   int64
	bytes    int64
}

// TestWorkOfAChange fails if a change costs more work than it does today. The mesh has
// 1,000 services, 100 views and 200 proxies. The limits of allocations and bytes are a
// quarter above what was measured. Raise a limit only together with the reason.
func TestWorkOfAChange(t *testing.T) {
	outside.Slow(t)
	const services, views, proxies, scoped = 1000, 100, 200, 1
	counted := &asked{}
	var past atomic.Int64 // views of past states
	var compiler *compile.Compiler
	l := newLarge(t, services, views, scoped, func(c discovery.Compiler) discovery.Compiler {
		if compiler == nil {
			compiler, _ = c.(*compile.Compiler)
			counted.Compiler = c
			return counted
		}
		return pastCompiler{c, &past}
	})
	has := l.join(t, views, proxies)
	for _, c := range []struct {
		name   string
		change func(testing.TB)
		most   work
	}{
		{"route of one view", l.changeScoped, work{views: 1, results: 14, messages: 3, allocs: 2_200, bytes: 430_000}},
		// The indexes of the mesh allocate a node for each step to what changes
		// (docs/decisions/035-machinery.md).
		{"endpoint of a service", l.changeEndpoint, work{allocs: 430, bytes: 130_000}},
		{"route of all views", l.changeRoute, work{views: 101, results: 414, messages: 203, allocs: 30_000, bytes: 18_300_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.poll(t, has)
			c.change(t) // The first one fills caches.
			l.poll(t, has)
			got := l.workOf(t, c.change, has, counted, compiler)
			// The server compiles past states when it has time. That work is none of the change.
			for past.Swap(0) > 0 {
				got = l.workOf(t, c.change, has, counted, compiler)
			}
			t.Logf("%+v", got)
			if got.views > c.most.views || got.results > c.most.results || got.messages > c.most.messages ||
				got.allocs > c.most.allocs || got.bytes > c.most.bytes {
				t.Errorf("a change costs %+v, at most %+v is allowed", got, c.most)
			}
		})
	}
}

// pastCompiler counts the views that it compiles.
type pastCompiler struct {
	discovery.Compiler
	views *atomic.Int64
}

func (c pastCompiler) ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error) {
	c.views.Add(1)
	return c.Compiler.ProxyWithin(ctx, traits)
}

// workOf makes a change, has every proxy take it, and returns the work of both.
func (l *large) workOf(t *testing.T, change func(testing.TB), has map[string]versions, counted *asked, compiler *compile.Compiler) work {
	counted.forget()
	results, messages := compiler.Runs(), l.s.Messages()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	change(t)
	runtime.ReadMemStats(&after)
	l.poll(t, has)
	return work{
		views: counted.forget(), results: compiler.Runs() - results, messages: l.s.Messages() - messages,
		allocs: int64(after.Mallocs - before.Mallocs), bytes: int64(after.TotalAlloc - before.TotalAlloc),
	}
}

// poll has every proxy ask for its clusters and routes, and accept them.
func (l *large) poll(tb testing.TB, has map[string]versions) {
	for node, v := range has {
		clusters, err := l.s.V3(discovery.ClusterType, mesh.Node{ID: node}, strings.Clone(v.clusters), nil)
		if err != nil {
			tb.Fatal(err)
		}
		if clusters.Version != "" {
			v.clusters = clusters.Version
		}
		routes, err := l.s.V3(discovery.RouteType, mesh.Node{ID: node}, strings.Clone(v.routes), []string{"80"})
		if err != nil {
			tb.Fatal(err)
		}
		if routes.Version != "" {
			v.routes = routes.Version
		}
		has[node] = v
	}
}
