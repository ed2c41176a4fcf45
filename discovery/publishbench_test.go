package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// large is a mesh of so many services with a VirtualService and a DestinationRule
// each, in as many namespaces as there are views, in which so many proxies have
// polled clusters and routes.
type large struct {
	src     *objects
	s       *discovery.Publisher
	all     []*schema.Object
	proxies int
	step    int
	scoped  int
}

const meshServices, meshViews = 1_000, 100

// newLarge has a route more that is for callers of so many of the namespaces, 0
// for none.
func newLarge(tb testing.TB, services, views, scoped int, wrap func(discovery.Compiler) discovery.Compiler) *large {
	l := &large{scoped: scoped}
	for i := range services {
		host := fmt.Sprintf("service-%d.example", i)
		l.all = append(l.all,
			service(tb, host, fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)),
			route(tb, i, 1),
			object(tb, "DestinationRule", host, fmt.Sprintf(`{"host":%q,"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":100}}}}`, host)))
	}
	// The proxies' own workloads are told apart by their namespaces.
	for i := range views {
		l.all = append(l.all, inNamespace(tb, object(tb, "DestinationRule", "of", `{"host":"nobody.example","exportTo":["."]}`), fmt.Sprintf("space-%d", i)))
	}
	if scoped > 0 {
		l.all = append(l.all, l.scopedRoute(tb))
	}
	l.src = newObjects(l.all...)
	l.s = discovery.NewWith(discovery.Options{Source: l.src, Settings: settings()}, wrap)
	once(tb, l.s)
	return l
}

func route(tb testing.TB, i, seconds int) *schema.Object {
	host := fmt.Sprintf("service-%d.example", i)
	return object(tb, "VirtualService", host, fmt.Sprintf(`{"hosts":[%q],"http":[{"timeout":"%ds","route":[{"destination":{"host":%q}}]}]}`, host, seconds, host))
}

func inNamespace(tb testing.TB, o *schema.Object, namespace string) *schema.Object {
	meta := o.Meta
	meta.Namespace = namespace
	moved, err := schema.New(o.Kind, meta, o.SpecJSON())
	if err != nil {
		tb.Fatal(err)
	}
	return moved
}

// join has more proxies poll, each in the next one of the namespaces.
func (l *large) join(tb testing.TB, views, proxies int) map[string]versions {
	has := map[string]versions{}
	for range proxies {
		node := fmt.Sprintf("sidecar~10.%d.%d.%d~p.x~space-%d.svc.cluster.local", 100+l.proxies/62500, l.proxies/250%250, l.proxies%250+1, l.proxies%views)
		l.proxies++
		clusters, err := l.s.V3(discovery.ClusterType, mesh.Node{ID: node}, "", nil)
		if err != nil {
			tb.Fatal(err)
		}
		routes, err := l.s.V3(discovery.RouteType, mesh.Node{ID: node}, "", []string{"80"})
		if err != nil {
			tb.Fatal(err)
		}
		listeners, err := l.s.V3(discovery.ListenerType, mesh.Node{ID: node}, "", nil)
		if err != nil {
			tb.Fatal(err)
		}
		for range 2 {
			_, err1 := l.s.V3(discovery.ClusterType, mesh.Node{ID: node}, strings.Clone(clusters.Version), nil)
			_, err2 := l.s.V3(discovery.RouteType, mesh.Node{ID: node}, strings.Clone(routes.Version), []string{strings.Clone("80")})
			_, err3 := l.s.V3(discovery.ListenerType, mesh.Node{ID: node}, strings.Clone(listeners.Version), nil)
			if err := errors.Join(err1, err2, err3); err != nil {
				tb.Fatal(err)
			}
		}
		has[node] = versions{clusters.Version, routes.Version}
	}
	return has
}

// versions that a proxy has accepted.
type versions struct{ clusters, routes string }

// change replaces one object.
func (l *large) change(tb testing.TB, at int, next *schema.Object) {
	l.all[at] = next
	l.src.replace(at, next)
	once(tb, l.s)
	if l.s.Revision() != l.src.revision {
		tb.Fatalf("published %d, want %d", l.s.Revision(), l.src.revision)
	}
}

func (l *large) changeRoute(tb testing.TB) {
	l.step++
	l.change(tb, 1, route(tb, 0, l.step%60+1))
}

func (l *large) changeEndpoint(tb testing.TB) {
	l.step++
	l.change(tb, 0, service(tb, "service-0.example", fmt.Sprintf("10.2.0.%d", l.step%250+1)))
}

func (l *large) changeScoped(tb testing.TB) {
	l.step++
	l.change(tb, len(l.all)-1, l.scopedRoute(tb))
}

// scopedRoute is one to a service that has another route for everybody else.
func (l *large) scopedRoute(tb testing.TB) *schema.Object {
	to := make([]string, l.scoped)
	for i := range to {
		to[i] = fmt.Sprintf("%q", fmt.Sprintf("space-%d", i))
	}
	return object(tb, "VirtualService", "a-scoped-one", fmt.Sprintf(
		`{"hosts":["service-1.example"],"exportTo":[%s],"http":[{"timeout":"%ds","route":[{"destination":{"host":"service-1.example"}}]}]}`,
		strings.Join(to, ","), l.step%60+1))
}

func TestLargePublish(t *testing.T) {
	l := newLarge(t, 5, 3, 1, plain)
	l.join(t, 3, 12)
	l.changeRoute(t)
	l.changeEndpoint(t)
	l.changeScoped(t)
}

// asked counts what a publication compiles.
type asked struct {
	discovery.Compiler
	mu    sync.Mutex
	views []string
}

func (c *asked) ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views = append(c.views, traits.Domain)
	return c.Compiler.ProxyWithin(ctx, traits)
}

// forget returns how many views were compiled since the last call.
func (c *asked) forget() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.views)
	c.views = nil
	return n
}

// TestPublicationIsScoped: views that a change does not concern, and their
// proxies, are not looked at, however many there are.
func TestPublicationIsScoped(t *testing.T) {
	const services, views, proxies, scoped = 10, 12, 60, 3
	counted := &asked{}
	l := newLarge(t, services, views, scoped, func(c discovery.Compiler) discovery.Compiler {
		counted.Compiler = c
		return counted
	})
	nodes := slices.Sorted(maps.Keys(l.join(t, views, proxies)))
	told := func() map[string]any {
		all := map[string]any{}
		for _, node := range nodes {
			view, _, err := l.s.Told(node)
			if err != nil {
				t.Fatal(err)
			}
			all[node] = view
		}
		return all
	}
	for what, c := range map[string]struct {
		change func(testing.TB)
		views  int
		whom   func(node string) bool
	}{
		"scoped":   {l.changeScoped, scoped, regexp.MustCompile(`space-[012]\.`).MatchString},
		"unscoped": {l.changeRoute, views + 1, func(string) bool { return true }}, // That of nobody is one more.
		"endpoint": {l.changeEndpoint, 0, func(string) bool { return false }},
	} {
		before := told()
		counted.views = nil
		c.change(t)
		if len(counted.views) != c.views {
			t.Errorf("%s: compiled %q, want %d views", what, counted.views, c.views)
		}
		for node, view := range told() {
			if (view != before[node]) != c.whom(node) {
				t.Errorf("%s: another view for %s: %t", what, node, view != before[node])
			}
		}
	}
}

func plain(c discovery.Compiler) discovery.Compiler { return c }

// BenchmarkPublishLarge: from a change at the source to published views. The
// proxies known must make no difference, nor the services of the mesh for what
// does not concern them all.
func BenchmarkPublishLarge(b *testing.B) {
	const everybody, few = 0, 10
	for _, c := range []struct {
		what                      string
		services, proxies, scoped int
		wrap                      func(discovery.Compiler) discovery.Compiler
	}{
		{"route", meshServices, meshViews, everybody, plain},
		{"route", meshServices, 10_000, everybody, plain},
		{"route", 10 * meshServices, meshViews, everybody, plain},
		{"route for ten", meshServices, 10_000, few, plain},
		{"route for ten", 10 * meshServices, meshViews, few, plain},
		{"nothing", meshServices, 10_000, everybody, newFixedViews},
	} {
		name := fmt.Sprintf("/services=%d/proxies=%d", c.services, c.proxies)
		var l *large
		run := func(what string, change func(*large, testing.TB)) {
			b.Run(what+name, func(b *testing.B) {
				if l == nil {
					l = newLarge(b, c.services, meshViews, c.scoped, c.wrap)
					l.join(b, meshViews, c.proxies)
				}
				b.ReportAllocs()
				cpu := cpuTime(b)
				for b.Loop() {
					change(l, b)
				}
				b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "µs-cpu/op")
			})
		}
		if c.scoped > 0 {
			run(c.what, (*large).changeScoped)
			continue
		}
		run(c.what, (*large).changeRoute)
		run("endpoint beside "+c.what, (*large).changeEndpoint)
	}
}

// cpuTime is what the process has used so far, whoever else uses the machine.
func cpuTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// fixedViews is a compiler for which no change concerns any view: what is left is
// what a publication costs by itself.
type fixedViews struct {
	discovery.Compiler
	mu      sync.Mutex
	configs map[string]*ir.Config
}

func newFixedViews(c discovery.Compiler) discovery.Compiler {
	return &fixedViews{Compiler: c, configs: map[string]*ir.Config{}}
}

func (c *fixedViews) ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := traits.Key()
	if c.configs[key] == nil {
		config, _, err := c.Compiler.ProxyWithin(ctx, traits)
		if err != nil {
			return nil, nil, err
		}
		c.configs[key] = config
	}
	return c.configs[key], nil, nil
}

func (c *fixedViews) Problems() diag.List { return nil }

// BenchmarkProxyMemory: what a further proxy of a known view takes.
func BenchmarkProxyMemory(b *testing.B) {
	l := newLarge(b, meshServices, 1, 0, plain)
	l.join(b, 1, 100)
	for b.Loop() {
		before := heap()
		l.join(b, 1, 10_000)
		b.ReportMetric(float64(heap()-before)/10_000, "B/proxy")
		runtime.KeepAlive(l)
	}
}

// BenchmarkHandoverMemory: what ten changes leave in memory that take a cluster
// away and bring another one, while proxies go on with the routes they had.
func BenchmarkHandoverMemory(b *testing.B) {
	const views, proxies, changes = 10, 100, 10
	for b.Loop() {
		l := newLarge(b, meshServices, views, 0, plain)
		has := l.join(b, views, proxies)
		before := heap()
		for i := range changes {
			l.change(b, 1, object(b, "RouteRule", "version", fmt.Sprintf(
				`{"destination":{"service":"service-0.example"},"route":[{"labels":{"version":"v%d"}}]}`, i)))
			for node, h := range has {
				_, err1 := l.s.V3(discovery.ClusterType, mesh.Node{ID: node}, h.clusters, nil)
				_, err2 := l.s.V3(discovery.RouteType, mesh.Node{ID: node}, h.routes, []string{"80"})
				if err := errors.Join(err1, err2); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(heap()-before)/views/changes, "B/view/change")
		runtime.KeepAlive(l)
	}
}
