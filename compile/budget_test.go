package compile_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// multiplying are meshes of a few small objects that multiply to far more than a
// server has room for, and the objects that are withheld for it.
var multiplying = map[string]struct {
	objects  func(t testing.TB) []*schema.Object
	withheld []string // kinds and names
}{
	"routes of a delegate through each route": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{
			webService(t),
			object(t, "VirtualService", "root", spec{"hosts": []string{"web.default.svc.cluster.local"}, "http": repeated(100, func(i int) spec {
				return spec{"match": prefixes(10, fmt.Sprintf("/o%d-", i)), "delegate": spec{"name": "inner"}}
			})}),
			object(t, "VirtualService", "inner", spec{"http": repeated(100, func(i int) spec {
				return spec{"match": regexes(10, i), "route": toWeb}
			})}),
		}
	}, []string{"VirtualService root"}},
	"routes at each of many services": {func(t testing.TB) []*schema.Object {
		return append(manyServices(t, 500), object(t, "VirtualService", "all", spec{
			"hosts": []string{"*.default.svc.cluster.local"}, "http": manyRoutes(4000),
		}))
	}, []string{"VirtualService all"}},
	"routes at each server of a gateway": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{
			webService(t), manyServers(t, 1000, "*"),
			object(t, "VirtualService", "edge", spec{"hosts": []string{"web.example.com"}, "gateways": []string{"edge"}, "http": manyRoutes(4000)}),
		}
	}, []string{"VirtualService edge"}},
	"hosts at each server of a gateway": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{
			webService(t), manyServers(t, 1000, "*"),
			object(t, "VirtualService", "edge", spec{"hosts": texts(1000, "h%d.example.com"), "gateways": []string{"edge"}, "http": manyRoutes(1)}),
		}
	}, []string{"Gateway edge", "VirtualService edge"}},
	"hosts that nobody declares at each port": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{
			object(t, "ServiceEntry", "many", spec{
				"hosts": []string{"many.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
				"ports": ports(400, "HTTP"), "endpoints": []spec{{"address": "10.1.0.1"}},
			}),
			object(t, "VirtualService", "nobodys", spec{"hosts": texts(1000, "h%d.example.com"), "http": manyRoutes(2)}),
		}
	}, []string{"VirtualService nobodys"}},
	"hosts for each namespace": {func(t testing.TB) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range 10 {
			out = append(out, object(t, "VirtualService", fmt.Sprintf("v%d", i), spec{
				"hosts": texts(1000, "h%d.example.com"), "exportTo": texts(250, "n%d"), "http": manyRoutes(1),
			}))
		}
		return out
	}, nil},
	"imports of a namespace": {func(t testing.TB) []*schema.Object {
		return append(manyServices(t, 500), object(t, "Sidecar", "default", spec{"egress": []spec{{"hosts": texts(20_000, "./*.x%d.example.com")}}}))
	}, nil},
	"connections at each address of each port": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{
			object(t, "ServiceEntry", "tcp", spec{
				"hosts": []string{"tcp.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
				"addresses": texts(100, "10.2.0.%d"), "ports": ports(100, "TCP"), "endpoints": []spec{{"address": "10.1.0.1"}},
			}),
			object(t, "VirtualService", "tcp", spec{"hosts": []string{"tcp.default.svc.cluster.local"}, "tcp": repeated(1000, func(i int) spec {
				return spec{"match": []spec{{"destinationSubnets": []string{fmt.Sprintf("10.3.%d.%d", i/256, i%256)}}}, "route": []spec{{"destination": spec{"host": "tcp"}}}}
			})}),
		}
	}, []string{"VirtualService tcp"}},
	"destinations of each match": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{webService(t), object(t, "VirtualService", "wide", spec{"hosts": []string{"web.default.svc.cluster.local"}, "http": []spec{{
			"match": prefixes(1000, "/"), "route": repeated(200, func(i int) spec { return spec{"destination": spec{"host": "web"}, "weight": 1} }),
		}}})}
	}, []string{"VirtualService wide"}},
	"text of each match": {func(t testing.TB) []*schema.Object {
		return []*schema.Object{webService(t), object(t, "VirtualService", "long", spec{"hosts": []string{"web.default.svc.cluster.local"}, "http": []spec{{
			"match": prefixes(1000, "/"), "route": toWeb, "headers": spec{"request": spec{"set": spec{"x": strings.Repeat("x", 200_000)}}},
		}}})}
	}, []string{"VirtualService long"}},
	"many together": {func(t testing.TB) []*schema.Object {
		out := manyServices(t, 300)
		for i := range 40 {
			out = append(out, objectIn(t, fmt.Sprintf("n%d", i), "VirtualService", "all", spec{
				"hosts": []string{"*.default.svc.cluster.local"}, "http": manyRoutes(300 + i), "exportTo": []string{"."},
			}))
		}
		return out
	}, texts(40, "VirtualService n%d/all")[10:]},
}

var toWeb = []spec{{"destination": spec{"host": "web.default.svc.cluster.local"}}}

func repeated(n int, of func(i int) spec) []spec {
	out := make([]spec, n)
	for i := range out {
		out[i] = of(i)
	}
	return out
}

func texts(n int, format string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

func prefixes(n int, before string) []spec {
	return repeated(n, func(i int) spec { return spec{"uri": spec{"prefix": fmt.Sprintf("%s%d", before, i)}} })
}

func regexes(n, of int) []spec {
	return repeated(n, func(i int) spec { return spec{"headers": spec{"x": spec{"regex": fmt.Sprintf("a%d-%d", of, i)}}} })
}

func manyRoutes(n int) []spec {
	return repeated(n, func(i int) spec { return spec{"match": prefixes(1, fmt.Sprintf("/p%d-", i)), "route": toWeb} })
}

func ports(n int, protocol string) []spec {
	return repeated(n, func(i int) spec {
		return spec{"number": 1024 + i, "name": fmt.Sprintf("p-%d", i), "protocol": protocol}
	})
}

func manyServices(t testing.TB, n int) []*schema.Object {
	out := []*schema.Object{webService(t)}
	for i := range n {
		out = append(out, object(t, "ServiceEntry", fmt.Sprintf("s%d", i), spec{
			"hosts": []string{fmt.Sprintf("s%d.default.svc.cluster.local", i)}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": ports(1, "HTTP"), "endpoints": []spec{{"address": "10.1.0.1"}},
		}))
	}
	return out
}

func manyServers(t testing.TB, n int, host string) *schema.Object {
	return object(t, "Gateway", "edge", spec{"servers": repeated(n, func(i int) spec {
		return spec{"port": spec{"number": 1024 + i, "name": fmt.Sprintf("p-%d", i), "protocol": "HTTP"}, "hosts": []string{host}}
	})})
}

// TestNothingMultipliesBeyondTheBudget: whatever lists multiply with each other, the
// memory that it takes is bounded, and the author is told.
func TestNothingMultipliesBeyondTheBudget(t *testing.T) {
	outside.Slow(t)
	const most = 700 << 20 // allocated, and most of it given back: that of 100,000 routes, and of a mesh of some hundred thousand
	for name, of := range multiplying {
		t.Run(name, func(t *testing.T) {
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), of.objects(t))
			c := compile.NewCompiler()
			used := allocated(func() {
				c.Advance(s)
				c.Problems()
				for _, role := range []string{"sidecar", "router"} {
					config, _ := c.Proxy(s.TraitsOf(proxy(t, role+"~10.9.0.1~a.default~default.svc.cluster.local")))
					if err := ir.Validate(config); err != nil {
						t.Error(err)
					}
				}
			})
			t.Logf("%d MiB allocated", used>>20)
			if used > most {
				t.Errorf("%d MiB were allocated, more than %d", used>>20, most>>20)
			}
			want := slices.Clone(of.withheld)
			for i, name := range want {
				kind, name, _ := strings.Cut(name, " ")
				if !strings.Contains(name, "/") {
					name = "default/" + name
				}
				want[i] = kind + " " + name
			}
			slices.Sort(want)
			if got := overBudget(c.Problems()); !slices.Equal(got, want) {
				t.Errorf("withheld are %q, want %q", got, want)
			}
		})
	}
}

// TestCostIsAtLeastWhatIsBuilt: an object that is not withheld has no more routes
// beyond those that it says, of any kind, than the budget allows, and one that is withheld answers
// 503.
func TestCostIsAtLeastWhatIsBuilt(t *testing.T) {
	withheld := 0
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.V1Compatibility = drawPilot(rt)
		settings.Budget = mesh.Budget{Object: rapid.IntRange(1, 8).Draw(rt, "budget"), Mesh: rapid.IntRange(8, 40).Draw(rt, "mesh")}
		objs := meshgen.Objects(rt)
		s := mesh.NewSnapshot(1, settings, objs)
		config, problems := compile.Proxy(s, s.TraitsOf(proxy(t, rapid.SampledFrom(meshgen.Proxies).Draw(rt, "node"))))
		if err := ir.Validate(config); err != nil {
			rt.Fatal(err)
		}
		most := map[string]int{}
		for _, o := range objs {
			if o.Kind.Kind != "VirtualService" {
				continue
			}
			spec, _ := o.Spec()
			name := "VirtualService " + o.Key().Namespace + "/" + o.Key().Name
			most[name] = settings.Budget.Object
			for _, r := range spec.(*networking.VirtualService).GetHttp() {
				most[name] += max(1, len(r.GetMatch()))
			}
			for _, r := range spec.(*networking.VirtualService).GetTls() {
				most[name] += len(r.GetMatch())
			}
			for _, r := range spec.(*networking.VirtualService).GetTcp() {
				most[name] += max(1, len(r.GetMatch()))
			}
		}
		out := map[string]bool{}
		for _, name := range overBudget(problems) {
			out[name] = true
			withheld++
		}
		built := map[string]int{}
		for _, table := range config.RouteTables {
			for _, host := range table.VirtualHosts {
				for _, r := range host.Routes {
					if len(r.Origins) == 0 || r.Origins[0].Kind != "VirtualService" || table.Name == compile.ProxyTable {
						continue
					}
					name := fmt.Sprintf("VirtualService %s/%s", r.Origins[0].Namespace, r.Origins[0].Name)
					if built[name]++; out[name] && (r.Response == nil || *r.Response != *ir.Unavailable()) {
						rt.Fatalf("%s is withheld, and has the route %v", name, r)
					}
				}
			}
		}
		for name, n := range built {
			if !out[name] && n > most[name] {
				rt.Fatalf("%s has %d routes, and may have %d", name, n, most[name])
			}
		}
	})
	if withheld == 0 {
		t.Error("nothing was withheld")
	}
}

// allocated is how many bytes are allocated meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// overBudget are the objects that are withheld, as "KIND NAMESPACE/NAME".
func overBudget(problems diag.List) []string {
	var out []string
	for _, p := range problems {
		if p.Code == diag.OverBudget {
			out = append(out, fmt.Sprintf("%s %s/%s", p.Object.Kind, p.Object.Namespace, p.Object.Name))
		}
	}
	slices.Sort(out)
	return out
}
