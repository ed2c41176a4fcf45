package compile_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestCalledHostsAnswerAsInTheWholeTable compares the tables of a proxy that has only the
// hosts that it calls with those of one that has all, in any mesh and after any change.
func TestCalledHostsAnswerAsInTheWholeTable(t *testing.T) {
	callable := []string{
		"a.default.svc.cluster.local", "a.default", "a", "b", "b.default", "c.example.com", "d.example.com", "x.d.example.com",
		"example.com", "nobody.test", "10.1.0.1", "[::1]", "a.other",
	}
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.OnDemand = mesh.OnDemandHosts
		settings.OutboundTrafficPolicy = rapid.SampledFrom([]mesh.OutboundMode{mesh.AllowAny, mesh.RegistryOnly}).Draw(rt, "unknown hosts")
		c := &changing{settings: settings, objects: map[schema.Key]*schema.Object{}}
		compiler := compile.NewCompiler()
		hosts := rapid.SliceOfDistinct(rapid.SampledFrom(callable), func(h string) string { return h }).Draw(rt, "called")
		proxy := meshgen.Proxy(rt, rapid.SampledFrom(meshgen.Proxies[:3]).Draw(rt, "proxy"))
		for range 3 {
			c.change(rt)
			snapshot := c.next(rt)
			compiler.Advance(snapshot)
			traits := snapshot.TraitsOf(proxy)
			whole, _ := compiler.Proxy(traits)
			var names []string
			for _, table := range whole.RouteTables {
				for _, host := range hosts {
					names = append(names, table.Name+"/"+host)
				}
			}
			traits.Called = mesh.NewCalled(names)
			some, _ := compiler.Proxy(traits)
			if err := ir.Validate(some); err != nil {
				rt.Fatalf("the configuration for called hosts is not valid: %v", err)
			}
			compareCalled(rt, whole, some, hosts)
		}
	})
}

func compareCalled(rt *rapid.T, whole, some *ir.Config, hosts []string) {
	if len(whole.RouteTables) != len(some.RouteTables) || len(whole.Listeners) != len(some.Listeners) {
		rt.Fatalf("%d tables and %d listeners, want %d and %d", len(some.RouteTables), len(some.Listeners), len(whole.RouteTables), len(whole.Listeners))
	}
	for i, table := range some.RouteTables {
		if !table.OnDemand {
			rt.Errorf("table %s asks for nothing", table.Name)
		}
		for _, h := range table.VirtualHosts {
			if strings.Contains(strings.Join(h.Domains, " "), "*") {
				rt.Errorf("table %s has domains %v, which hide hosts that it lacks", table.Name, h.Domains)
			}
			// A domain that the workload has not called must lead where it leads in the whole
			// table, because the proxy asks for no host that it has.
			for _, domain := range h.Domains {
				if want := takes(whole.RouteTables[i], domain); want == nil || want.Name != h.Name {
					rt.Errorf("table %s sends %s to %s, want %v", table.Name, domain, h.Name, want)
				}
			}
		}
		for _, host := range hosts {
			want, got := takes(whole.RouteTables[i], host), takes(table, host)
			if (want == nil) != (got == nil) {
				rt.Errorf("table %s has %v for %s, want %v", table.Name, got, host, want)
			} else if want != nil && (want.Name != got.Name || !reflect.DeepEqual(want.Routes, got.Routes)) {
				rt.Errorf("table %s has %v for %s, want %v", table.Name, *got, host, *want)
			}
		}
	}
}

// takes returns the virtual host that an Envoy chooses for a host, or nil.
func takes(t *ir.RouteTable, host string) (best *ir.VirtualHost) {
	rank := 0
	for _, h := range t.VirtualHosts {
		for _, domain := range h.Domains {
			head, tail, wild := strings.Cut(domain, "*")
			r := 0
			switch {
			case domain == host:
				r = 3000
			case domain == "*":
				r = 1
			case wild && len(host) >= len(domain) && head == "" && strings.HasSuffix(host, tail):
				r = 2000 + len(domain)
			case wild && len(host) >= len(domain) && tail == "" && strings.HasPrefix(host, head):
				r = 1000 + len(domain)
			}
			if r > rank {
				rank, best = r, h
			}
		}
	}
	return best
}

// TestProxiesHaveTheClustersOfWhatTheyCall compares the clusters too: those of hosts that a
// proxy does not call are not in its configuration.
func TestProxiesHaveTheClustersOfWhatTheyCall(t *testing.T) {
	kind, _ := schema.KindByName("ServiceEntry")
	var objects []*schema.Object
	for _, host := range []string{"one", "two"} {
		o, err := schema.New(kind, metav1.ObjectMeta{Name: host, Namespace: "default"}, fmt.Appendf(nil,
			`{"hosts":["%s.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC","endpoints":[{"address":"10.0.0.1"}]}`, host))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	settings := mesh.DefaultSettings()
	settings.OnDemand = mesh.OnDemandHosts
	snapshot := mesh.NewSnapshot(1, settings, objects)
	compiler := compile.NewCompiler()
	compiler.Advance(snapshot)
	for _, of := range []struct {
		called   *mesh.Called
		one, two bool
	}{
		{nil, true, true},
		{mesh.NewCalled(nil), false, false},
		{mesh.NewCalled([]string{"80/one.example.com"}), true, false},
		{mesh.NewCalled([]string{"80/TWO.example.com:8080", "90/one.example.com"}), false, true},
		{mesh.CallsEverything(), true, true},
	} {
		traits := snapshot.TraitsOf(meshgen.Proxy(t, meshgen.Proxies[0]))
		traits.Called = of.called
		config, _ := compiler.Proxy(traits)
		has := map[string]bool{}
		for _, cluster := range config.Clusters {
			for _, host := range []string{"one", "two"} {
				if strings.Contains(cluster.Name, host+".example.com") {
					has[host] = true
				}
			}
		}
		if has["one"] != of.one || has["two"] != of.two {
			t.Errorf("who calls %v has clusters of %v", of.called, has)
		}
	}
}

// TestHostsThatNobodyCallsCostNothing: objects for a host that no workload calls leave the
// configurations as they are, and what is computed again does not grow with the callers.
func TestHostsThatNobodyCallsCostNothing(t *testing.T) {
	host := func(name string) []*schema.Object {
		return []*schema.Object{
			objectIn(t, "owner", "ServiceEntry", name, spec{
				"hosts": []string{name + ".example"}, "resolution": "STATIC", "location": "MESH_INTERNAL",
				"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.1"}},
			}),
			objectIn(t, "owner", "VirtualService", name, spec{
				"hosts": []string{name + ".example"}, "exportTo": []string{"."},
				"http": []spec{{"timeout": "5s", "route": []spec{{"destination": spec{"host": name + ".example"}}}}},
			}),
			objectIn(t, "owner", "DestinationRule", name, spec{"host": name + ".example", "exportTo": []string{"."}}),
		}
	}
	// A rule that all see for a host that nobody declares is followed at all ports.
	loose := objectIn(t, "owner", "VirtualService", "loose", spec{"hosts": []string{"loose.example"}, "http": []spec{{"directResponse": spec{"status": 403}}}})
	// counted returns how many results a new host makes a compiler compute again.
	counted := func(callers int) int64 {
		objects := slices.Concat(host("called"), host("known"), []*schema.Object{loose})
		compiler, settings := compile.NewCompiler(), mesh.DefaultSettings()
		settings.OnDemand = mesh.OnDemandHosts
		configs := func(objects []*schema.Object) (out []*ir.Config) {
			snapshot := mesh.NewSnapshot(1, settings, objects)
			compiler.Advance(snapshot)
			for n := range callers {
				traits := snapshot.TraitsOf(proxy(t, fmt.Sprintf("sidecar~10.9.0.%d~caller~team-%d.svc.cluster.local", n, n)))
				traits.Called = mesh.NewCalled([]string{"80/called.example"})
				config, _ := compiler.Proxy(traits)
				out = append(out, config)
			}
			return out
		}
		before := configs(objects)
		runs := compiler.Runs()
		if after := configs(slices.Concat(objects, host("uncalled"))); !slices.Equal(before, after) {
			t.Error("a host that nobody calls made other configurations")
		}
		runs = compiler.Runs() - runs
		if after := configs(slices.Concat(objects, host("Called"))); slices.Equal(before, after) {
			t.Error("a host that competes for a called name changed nothing")
		}
		return runs
	}
	few, many := counted(2), counted(20)
	// For each caller: which ports are open, whether rules for undeclared hosts are followed,
	// and the connections.
	if most := few + 18*4; many > most {
		t.Errorf("for 2 callers %d results were computed again, for 20 callers %d, want at most %d", few, many, most)
	}
}

// TestSidecarDecidesWhatIsOnDemand: the annotation goes before the mesh settings, but a mesh
// with which no host can be on demand says so at the Sidecar.
func TestSidecarDecidesWhatIsOnDemand(t *testing.T) {
	for _, test := range []struct {
		mesh      mesh.OnDemandMode
		sidecar   string
		proxyPort int
		want      mesh.OnDemandMode
		problem   string
	}{
		{mesh.OnDemandOff, "", 0, mesh.OnDemandOff, ""},
		{mesh.OnDemandOff, schema.OnDemandHosts, 0, mesh.OnDemandHosts, ""},
		{mesh.OnDemandHosts, "", 0, mesh.OnDemandHosts, ""},
		{mesh.OnDemandHosts, schema.OnDemandOff, 0, mesh.OnDemandOff, ""},
		{mesh.OnDemandOff, schema.OnDemandHosts, 15002, mesh.OnDemandOff, "hosts requires that proxyHttpPort is 0"},
	} {
		settings := mesh.DefaultSettings()
		settings.OnDemand, settings.ProxyHTTPPort = test.mesh, test.proxyPort
		o := objectIn(t, "default", "Sidecar", "default", spec{"outboundTrafficPolicy": spec{"mode": "ALLOW_ANY"}})
		meta := o.Meta
		if test.sidecar != "" {
			meta.Annotations = map[string]string{schema.OnDemandAnnotation: test.sidecar}
		}
		o, err := o.WithMeta(meta)
		if err != nil {
			t.Fatal(err)
		}
		snapshot := mesh.NewSnapshot(1, settings, []*schema.Object{o})
		compiler := compile.NewCompiler()
		compiler.Advance(snapshot)
		traits := snapshot.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local"))
		if got := compiler.OnDemand(traits); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
		if problems := compiler.Problems().Error(); !strings.Contains(problems, test.problem) {
			t.Errorf("%+v: problems are %q", test, problems)
		}
	}
}
