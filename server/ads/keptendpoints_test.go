package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilot-api/pilot-api/schema"
)

// shopWith returns a ServiceEntry whose port has a name and whose instances have a version.
func shopWith(port, version string, more ...string) *schema.Object {
	return object("ServiceEntry", "shop", fmt.Sprintf(
		`{"hosts":["shop.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"targetPort":8080,"name":%q,"protocol":"HTTP"}],`+
			`"endpoints":[{"address":"10.0.1.1","labels":{"version":%q}}]%s}`, port, version, strings.Join(more, "")))
}

// subset returns a DestinationRule with subsets, each NAME=VERSION.
func subset(all ...string) *schema.Object {
	var subsets []string
	for _, s := range all {
		name, version, _ := strings.Cut(s, "=")
		subsets = append(subsets, fmt.Sprintf(`{"name":%q,"labels":{"version":%q}}`, name, version))
	}
	return object("DestinationRule", "shop", `{"host":"shop.example","subsets":[`+strings.Join(subsets, ",")+`]}`)
}

// virtual returns a VirtualService of shop.example that leads to a subset of a host.
func virtual(name, host, subset string) *schema.Object {
	if subset != "" {
		subset = fmt.Sprintf(`,"subset":%q`, subset)
	}
	return object("VirtualService", name, fmt.Sprintf(`{"hosts":["shop.example"],"http":[{"route":[{"destination":{"host":%q%s}}]}]}`, host, subset))
}

// exchange is one write that takes the instances from a set of endpoints, and the routes
// with them.
type exchange struct {
	before, after []*schema.Object
}

// exchanges are ordinary changes, each with what it makes of what was before.
func exchanges() map[string]exchange {
	blue, green := service("blue.example", 80, 2, "a"), service("green.example", 80, 3, "a")
	return map[string]exchange{
		"a port has another name":       {[]*schema.Object{shopWith("http", "v1")}, []*schema.Object{shopWith("web", "v1")}},
		"exportTo is set":               {[]*schema.Object{shopWith("http", "v1")}, []*schema.Object{shopWith("http", "v1", `,"exportTo":["."]`)}},
		"exportTo is taken off":         {[]*schema.Object{shopWith("http", "v1", `,"exportTo":["."]`)}, []*schema.Object{shopWith("http", "v1")}},
		"instances and a subset change": {[]*schema.Object{shopWith("http", "v1"), subset("s=v1"), virtual("shop", "shop.example", "s")}, []*schema.Object{shopWith("http", "v9"), subset("s=v9"), virtual("shop", "shop.example", "s")}},
		"instances and a route change": {
			[]*schema.Object{shopWith("http", "v1"), subset("one=v1", "nine=v9"), virtual("shop", "shop.example", "one")},
			[]*schema.Object{shopWith("http", "v9"), subset("one=v1", "nine=v9"), virtual("shop", "shop.example", "nine")},
		},
		"a rule has another name": {
			[]*schema.Object{shopWith("http", "v1"), subset("s=v1"), virtual("shop", "shop.example", "s")},
			[]*schema.Object{shopWith("http", "v1"), subset("s=v1"), virtual("store", "shop.example", "s")},
		},
		"a service replaces another": {
			[]*schema.Object{shopWith("http", "v1"), blue, virtual("shop", "blue.example", "")},
			[]*schema.Object{shopWith("http", "v1"), green, virtual("shop", "green.example", "")},
		},
	}
}

// exchange makes one write of it.
func (s *source) exchange(x exchange) {
	s.change(func() {
		for _, o := range x.before {
			delete(s.all, o.Key())
		}
		for _, o := range x.after {
			s.all[o.Key()] = o
		}
	})
	settle()
}

// back is the exchange that undoes it.
func (x exchange) back() exchange { return exchange{x.after, x.before} }

// unknownName returns a service whose cluster warms as long as the proxy says: its name is not
// resolved.
func unknownName(n int) *schema.Object {
	return object("ServiceEntry", fmt.Sprintf("unknown-%d", n), fmt.Sprintf(
		`{"hosts":["unknown-%d.example"],"location":"MESH_EXTERNAL","resolution":"DNS","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`, n))
}

// eachExchange runs a test for each of exchanges, with a proxy that fails the test when a
// route leads to a cluster without instances.
func eachExchange(t *testing.T, test func(x exchange, src *source, s *server, e *envoy)) {
	for name, x := range exchanges() {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src := newSource(x.before...)
				s := serve(t, src)
				e := newEnvoy(s.connect(kind, nodeA)).start()
				e.serving = true
				test(x, src, s, e)
			})
		})
	}
}

// TestRoutesNeverLeadToNoInstances checks that a set of endpoints keeps its instances until
// the routes have left it, and then is as the mesh has it.
func TestRoutesNeverLeadToNoInstances(t *testing.T) {
	eachExchange(t, func(x exchange, src *source, s *server, e *envoy) {
		for range 2 {
			src.exchange(x)
			e.play()
			e.sameAs(e.t, newEnvoy(s.connect(e.kind, nodeB)).start())
			x = x.back()
		}
	})
}

// TestRoutesNeverLeadToNoInstancesBesideAnUnknownName checks the same while the routes have to
// wait for a cluster that never warms.
func TestRoutesNeverLeadToNoInstancesBesideAnUnknownName(t *testing.T) {
	eachExchange(t, func(x exchange, src *source, s *server, e *envoy) {
		e.unresolved = true
		for i := range 2 {
			src.put(unknownName(i))
			src.exchange(x)
			e.play()
			time.Sleep(time.Minute)
			e.play()
			x = x.back()
		}
		e.unresolved = false
		e.release()
		e.play()
		e.sameAs(e.t, newEnvoy(s.connect(e.kind, nodeB)).start())
	})
}

// TestRoutesNeverLeadToNoInstancesAfterAReconnect checks the same for a proxy that was away
// during the change and can say what it has.
func TestRoutesNeverLeadToNoInstancesAfterAReconnect(t *testing.T) {
	eachExchange(t, func(x exchange, src *source, s *server, e *envoy) {
		if e.kind == world {
			return // It cannot say which endpoints it has.
		}
		other := serve(e.t, src)
		e.end()
		src.exchange(x)
		e.again(other.connect(e.kind, nodeA))
		e.play()
		fresh := newEnvoy(s.connect(e.kind, nodeB)).start()
		e.sameAs(e.t, fresh)
	})
}

// TestAProxyThatRefusesItsRoutesLearnsThatInstancesAreGone checks that the wait for the
// routes ends.
func TestAProxyThatRefusesItsRoutesLearnsThatInstancesAreGone(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(shopWith("http", "v1"))
		e := newEnvoy(serve(t, src).connect(kind, nodeA)).start()
		e.refuses = func(r response) (string, bool) { return "no", r.typeURL == rds }
		src.publish(shopWith("web", "v1"))
		emptiesLate(t, e)
	})
}

// TestAReconnectedProxyThatRefusesItsRoutesLearnsThatInstancesAreGone checks the same for what
// a proxy comes with.
func TestAReconnectedProxyThatRefusesItsRoutesLearnsThatInstancesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(shopWith("http", "v1"))
		e := newEnvoy(serve(t, src).connect(delta, nodeA)).start()
		other := serve(t, src)
		e.end()
		e.refuses = func(r response) (string, bool) { return "no", r.typeURL == rds }
		src.publish(shopWith("web", "v1"))
		e.again(other.connect(delta, nodeA))
		emptiesLate(t, e)
	})
}

// emptiesLate checks that e, which refuses the routes of shopWith("web", "v1"), keeps the set
// that they leave for 30 seconds, and has it empty 30 seconds later.
func emptiesLate(t *testing.T, e *envoy) {
	t.Helper()
	e.play()
	time.Sleep(30 * time.Second)
	e.play()
	if empty(e, "shop.example|http") {
		t.Error("the set that the refused routes leave is empty at once")
	}
	time.Sleep(30 * time.Second)
	e.play()
	if !empty(e, "shop.example|http") {
		t.Error("the set that no service has stays as it was for ever")
	}
	e.nothing("of what is empty")
}

// TestLostInstancesAreToldAtOnce checks that a set whose instances are gone waits for no
// route that stays.
func TestLostInstancesAreToldAtOnce(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, _, e := ready(t, kind)
		src.publish(service("web.example", 80, 1))
		got := e.told()
		wantTold(t, got, "ClusterLoadAssignment[web.example|http]")
		e.take(got[0])
		if !empty(e, "web.example|http") {
			t.Error("the instances are still there")
		}
	})
}

func empty(e *envoy, set string) bool {
	a := e.has[eds][set]
	return a != nil && len(decoded[*endpointv3.ClusterLoadAssignment](e.t, a).GetEndpoints()) == 0
}

// hasInstances reports whether requests to a cluster go anywhere, or the proxy refused its
// endpoints.
func (e *envoy) hasInstances(cluster string) bool {
	c := decoded[*clusterv3.Cluster](e.t, e.has[cds][cluster])
	return c.GetType() != clusterv3.Cluster_EDS || !empty(e, c.GetEdsClusterConfig().GetServiceName())
}
