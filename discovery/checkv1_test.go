package discovery_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// pollsV1 has proxies ask in v1.
func pollsV1(t testing.TB, s *discovery.Publisher, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		if _, err := s.V1Clusters(node); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckOfWhatIsLostInV1: told to who writes while a proxy asks in v1, once, until
// the object is mended.
func TestCheckOfWhatIsLostInV1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Hour
		s := follow(t, newObjects(service(t, "one.example", "10.1.0.1")), discovery.Options{CheckPatience: time.Hour, ProxyIdle: idle})
		polls(t, s, nodeA)
		check := func(name string, o *schema.Object, want ...string) {
			t.Helper()
			for _, w := range []discovery.Written{{Changes: after(o), DryRun: true}, {Changes: after(o)}} {
				if got := codesOf(t, s, w); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
		bad, spared := hashed(t, "hashed", "one.example", false), hashed(t, "hashed", "one.example", true)
		const lost = "hashed PA0601"
		check("nobody asks in v1", bad)
		pollsV1(t, s, nodeB)
		check("one does", bad, lost)
		pollsV1(t, s, nodeA, nodeWeb, "sidecar~10.9.0.3~c.books~books.svc.cluster.local", "router~10.9.0.4~d.default~default.svc.cluster.local")
		check("many do", bad, lost)
		check("an object of others", timeout(t, "one.example", 1))
		check("mended", spared)
		check("broken again", bad, lost)
		time.Sleep(idle + time.Second)
		check("nobody does any more", bad)
		polls(t, s, nodeA)
		check("one that did speaks v3", bad)
		pollsV1(t, s, nodeB)
		check("one does again", bad, lost)
		if got := blamed(s.Report().Problems); got != nil {
			t.Errorf("what was looked at is published: %q", got)
		}
	})
}

// TestCheckLooksAtKindsOfProxies and at few of them, whatever number asks in v1.
func TestCheckLooksAtKindsOfProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		var all []*schema.Object
		for i := range 20 {
			all = append(all, inNamespace(t, service(t, fmt.Sprintf("h%d.example", i), fmt.Sprintf("10.1.0.%d", i)), fmt.Sprintf("n%d", i)))
		}
		s := followWith(t, newObjects(all...), discovery.Options{CheckPatience: time.Hour, ProxyIdle: time.Minute}, f)
		w := discovery.Written{Changes: after(hashed(t, "hashed", "h1.example", false))}
		looks := func() (domains []string) {
			f.proxy = func(traits mesh.Traits) { domains = append(domains, traits.Domain) }
			defer func() { f.proxy = nil }()
			codesOf(t, s, w)
			slices.Sort(domains)
			return domains
		}
		if got := looks(); got != nil {
			t.Errorf("without v1: %q", got)
		}
		for i := range 20 {
			pollsV1(t, s, fmt.Sprintf("sidecar~10.1.0.%d~x.n1~n1.svc.cluster.local", i))
		}
		if got := looks(); len(got) != 1 {
			t.Errorf("at workloads of one namespace: %q", got)
		}
		for i := range 20 {
			time.Sleep(time.Second)
			pollsV1(t, s, fmt.Sprintf("sidecar~10.1.0.%d~x.n%d~n%d.svc.cluster.local", i, i, i))
		}
		last := func(n int) (domains []string) {
			for i := 19; len(domains) < n; i-- {
				domains = append(domains, fmt.Sprintf("n%d.svc.cluster.local", i))
			}
			slices.Sort(domains)
			return domains
		}
		want := append([]string{"n1.svc.cluster.local"}, last(7)...)
		if got := looks(); !slices.Equal(got, want) {
			t.Errorf("at namespaces: %q, want the one of before and those that asked last: %q", got, want)
		}
		pollsV1(t, s, "sidecar~10.1.0.2~x.n2~n2.svc.cluster.local")
		if got := looks(); !slices.Equal(got, want) {
			t.Errorf("after another one asked: %q, want %q", got, want)
		}
		var released []string
		f.release = func(key string) { released = append(released, key) }
		time.Sleep(time.Minute + time.Second)
		if got := looks(); got != nil || len(released) != 8 {
			t.Errorf("when nobody asks: %q, and %d views are let go, want 8", got, len(released))
		}
	})
}

// TestCheckInV1IsAsFromScratch: whatever is written before.
func TestCheckInV1IsAsFromScratch(t *testing.T) {
	outside.Slow(t)
	nodes := []string{nodeA, nodeWeb, "router~10.9.0.4~d.default~default.svc.cluster.local"}
	src := newObjects()
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		for range 8 {
			is := map[schema.Key]*schema.Object{}
			for range rapid.IntRange(0, 4).Draw(rt, "stored") {
				o := lossy(t, rt)
				is[o.Key()] = o
			}
			src.set(slices.Collect(maps.Values(is))...)
			pollsV1(t, s, nodes...)
			o := lossy(t, rt)
			is[o.Key()] = o
			got := slices.DeleteFunc(s.CheckNow(discovery.Written{Changes: after(o), DryRun: true}), func(p diag.Problem) bool { return p.Code != diag.LostInV1 })
			if want := lostOf(t, is, nodes, o.Key().Ref()); !slices.Equal(got, want) {
				rt.Fatalf("of %v:\n%v\nwant\n%v", o.Key(), got, want)
			}
		}
	})
}

// lossy is an object of which v1 may not be told all.
func lossy(t *testing.T, rt *rapid.T) *schema.Object {
	hosts := []string{"a.example", "b.example", "web.example"}
	host := rapid.SampledFrom(hosts).Draw(rt, "host")
	switch rapid.IntRange(0, 2).Draw(rt, "kind") {
	case 0:
		return service(t, host, "10.1.0.1")
	case 1:
		return hashed(t, host, host, rapid.Bool().Draw(rt, "spared"))
	}
	return object(t, "VirtualService", host, fmt.Sprintf(`{"hosts":[%q],"http":[{"fault":{"abort":{"httpStatus":503,"percentage":{"value":%v}}},
		"route":[{"destination":{"host":%q}}]}]}`, host, rapid.SampledFrom([]float64{50, 0.5}).Draw(rt, "percent"), rapid.SampledFrom(hosts).Draw(rt, "to")))
}

// lostOf is what proxies lose of an object, found by who knows nothing.
func lostOf(t *testing.T, all map[schema.Key]*schema.Object, nodes []string, of diag.Ref) (lost diag.List) {
	t.Helper()
	objects := slices.Collect(maps.Values(all))
	snapshot := mesh.NewSnapshot(1, settings(), objects)
	for _, node := range nodes {
		proxy, err := mesh.ParseProxy(node)
		if err != nil {
			t.Fatal(err)
		}
		config, _ := compile.Proxy(snapshot, snapshot.TraitsOf(proxy))
		var losses v1.Losses
		losses.Advance(config, proxy.IP)
		for _, p := range losses.List(func(ref diag.Ref) bool { return ref == of }) {
			if !slices.Contains(lost, p) {
				lost = append(lost, p)
			}
		}
	}
	slices.SortFunc(lost, func(a, b diag.Problem) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	return lost
}
