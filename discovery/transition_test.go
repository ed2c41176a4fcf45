package discovery_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// toVersion routes web.example to the instances of one version, through a
// cluster of their own.
func toVersion(t testing.TB, version string) *schema.Object {
	return object(t, "RouteRule", "version", `{"destination":{"service":"web.example"},"route":[{"labels":{"version":"`+version+`"}}]}`)
}

// foreignVersion does the same from a namespace that is not the service's.
func foreignVersion(t testing.TB, version string) []*schema.Object {
	out := []*schema.Object{
		object(t, "VirtualService", "version", `{"hosts":["web.example"],"http":[{"route":[{"destination":{"host":"web.example","subset":"s"}}]}]}`),
		object(t, "DestinationRule", "version", `{"host":"web.example","subsets":[{"name":"s","labels":{"version":"`+version+`"}}]}`),
	}
	for i, o := range out {
		meta := o.Meta
		meta.Namespace = "elsewhere"
		moved, err := schema.New(o.Kind, meta, o.SpecJSON())
		if err != nil {
			t.Fatal(err)
		}
		out[i] = moved
	}
	return out
}

func clusterOf(version string) string { return "out.web.example|http|version=" + version }

// poller is an Envoy that asks when the test says so, and accepts what it is
// answered.
type poller struct {
	*testing.T
	s    *discovery.Publisher
	has  map[string]discovery.Answer // by type, and by name for others than those of web.example
	deny map[string]bool             // types that it refuses
	kept map[string]string           // by type: a version that it keeps, because it refuses a part and applies the rest
}

// proxyTable is the route table of the port for HTTP proxies, which each sidecar has.
const proxyTable = compile.ProxyTable

func newPoller(t *testing.T, s *discovery.Publisher) poller {
	return poller{t, s, map[string]discovery.Answer{}, map[string]bool{}, map[string]string{}}
}

// at is the same Envoy after the server started anew.
func (p poller) at(s *discovery.Publisher) poller {
	p.s = s
	return p
}

func (p poller) ask(typeURL string, names ...string) discovery.Answer {
	p.Helper()
	key := typeURL
	if len(names) == 1 && names[0] != "80" && names[0] != webEndpoints {
		key += names[0]
	}
	has := cmp.Or(p.kept[key], p.has[key].Version)
	a, err := p.s.V3(typeURL, mesh.Node{ID: nodeA}, has, names)
	if err != nil {
		p.Fatal(err)
	}
	if a.Version != has && !p.deny[typeURL] {
		p.has[key] = a
	}
	return p.has[key]
}

func (p poller) hasCluster(name string) bool {
	p.Helper()
	return slices.Contains(resourceNames(p.T, p.ask(discovery.ClusterType)), name)
}

func (p poller) routesTo(name string) bool {
	p.Helper()
	return strings.Contains(string(p.ask(discovery.RouteType, "80").Body), `"`+name+`"`)
}

func (p poller) want(what string, got, want bool) {
	p.Helper()
	if got != want {
		p.Errorf("%s: %v, want %v", what, got, want)
	}
}

// inHandover has a proxy that knows version v1 of a service, and a rule that
// has just changed to v2.
func inHandover(t *testing.T, test func(p poller, src *objects)) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"), toVersion(t, "v1"))
		p := newPoller(t, follow(t, src, discovery.Options{}))
		p.want("cluster v1 at first", p.hasCluster(clusterOf("v1")), true)
		p.want("route to v1 at first", p.routesTo(clusterOf("v1")), true)
		src.set(service(t, "web.example", "10.1.0.1"), toVersion(t, "v2"))
		time.Sleep(time.Second)
		test(p, src)
	})
}

func TestHandoverMakesBeforeItBreaks(t *testing.T) {
	inHandover(t, func(p poller, _ *objects) {
		p.want("route to v2 before its cluster was fetched", p.routesTo(clusterOf("v2")), false)
		p.want("cluster v2", p.hasCluster(clusterOf("v2")), true)
		p.want("cluster v1, which is still routed to", p.hasCluster(clusterOf("v1")), true)
		p.want("route to v2 at once", p.routesTo(clusterOf("v2")), false)
		time.Sleep(time.Second)
		p.want("route to v2", p.routesTo(clusterOf("v2")), true)
		time.Sleep(time.Second)
		p.want("cluster v1 while nobody knows whether the route was accepted", p.hasCluster(clusterOf("v1")), true)
		p.want("route to v2 again", p.routesTo(clusterOf("v2")), true)
		p.want("cluster v1 at once", p.hasCluster(clusterOf("v1")), true)
		time.Sleep(time.Second)
		p.want("cluster v1 after its last route", p.hasCluster(clusterOf("v1")), false)
		p.want("cluster v2 in the end", p.hasCluster(clusterOf("v2")), true)
	})
}

func TestHandoverEndsWithoutPollsForClusters(t *testing.T) {
	inHandover(t, func(p poller, _ *objects) {
		for range 4 * mesh.DefaultSettings().DiscoveryRefreshDelay / time.Second {
			p.want("route to v2 while clusters may still be polled", p.routesTo(clusterOf("v2")), false)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		p.want("route to v2 in the end", p.routesTo(clusterOf("v2")), true)
	})
}

// TestHandoverEndsWithoutPollsForRoutes: a table that is polled no more, while
// clusters are, belonged to a listener that is gone.
func TestHandoverEndsWithoutPollsForRoutes(t *testing.T) {
	inHandover(t, func(p poller, _ *objects) {
		p.want("cluster v1", p.hasCluster(clusterOf("v1")), true)
		time.Sleep(6*mesh.DefaultSettings().DiscoveryRefreshDelay + time.Second)
		p.want("cluster v1 of a proxy that was silent", p.hasCluster(clusterOf("v1")), true)
		p.hasCluster("")
		p.hasCluster("")
		p.want("cluster v1 in the end", p.hasCluster(clusterOf("v1")), false)
	})
}

// TestClustersStayUntilRoutesAreAccepted: a proxy that refuses new routes keeps
// the clusters of those it has, however long that takes and whatever changes.
// It becomes a problem that names it.
func TestClustersStayUntilRoutesAreAccepted(t *testing.T) {
	inHandover(t, func(p poller, src *objects) {
		round := func() {
			time.Sleep(mesh.DefaultSettings().DiscoveryRefreshDelay)
			p.want("cluster v1 of the routes in use", p.hasCluster(clusterOf("v1")), true)
			time.Sleep(time.Second)
			p.routesTo("")
		}
		p.deny[discovery.RouteType] = true
		for range 5 {
			round()
		}
		if !refuses(p) {
			t.Error("nobody is told that the proxy refuses its routes")
		}
		for _, version := range strings.Fields("v3 v4 v5 v6 v7 v8 v9 v10 v11 v12") {
			src.set(service(t, "web.example", "10.1.0.1"), toVersion(t, version))
			time.Sleep(time.Second)
			round()
			round()
			p.want("newest cluster", slices.Contains(resourceNames(p.T, p.has[discovery.ClusterType]), clusterOf(version)), true)
		}
		p.want("a cluster that was never used", p.hasCluster(clusterOf("v5")), false)
		p.deny[discovery.RouteType] = false
		p.want("route to v12 when it is accepted", p.routesTo(clusterOf("v12")), true)
		p.routesTo("")
		if refuses(p) {
			t.Error("a proxy that has accepted is still said to refuse")
		}
		time.Sleep(time.Second)
		p.want("cluster v1 after its last route", p.hasCluster(clusterOf("v1")), false)
	})
}

// refuses reports whether the proxy is among the problems.
func refuses(p poller) bool {
	return slices.ContainsFunc(p.s.Report().Problems, func(problem diag.Problem) bool {
		return strings.Contains(problem.Message, nodeA) && strings.Contains(problem.Message, "refuses")
	})
}

// TestRestartWithdrawsNothingInUse: a server that starts anew knows of a proxy
// only the versions it has. Whatever the proxy polls first, no route is without
// its cluster.
func TestRestartWithdrawsNothingInUse(t *testing.T) {
	web := service(t, "web.example", "10.1.0.1")
	// Rules of any namespace are followed by all, as they are not by default.
	lenient := settings()
	lenient.V1Compatibility.AnyNamespaceRules = true
	for name, restart := range map[string]struct {
		before  discovery.Options
		objects []*schema.Object
		missed  [][]*schema.Object // what is written while there is no server
		after   discovery.Options
		change  []*schema.Object // what is written next, if anything
	}{
		"nothing changed":     {objects: []*schema.Object{web, toVersion(t, "v1")}},
		"a change follows":    {objects: []*schema.Object{web, toVersion(t, "v1")}, change: []*schema.Object{web, toVersion(t, "v2")}},
		"changes went before": {objects: []*schema.Object{web, toVersion(t, "v1")}, missed: [][]*schema.Object{{web, toVersion(t, "v2")}, {web, toVersion(t, "v3")}}},
		"other settings": {
			before:  discovery.Options{Settings: lenient},
			objects: append(foreignVersion(t, "v1"), web),
			after:   discovery.Options{PastSettings: []*mesh.Settings{lenient}},
		},
	} {
		for _, first := range []string{discovery.ClusterType, discovery.RouteType} {
			t.Run(name+"/first "+first[strings.LastIndexByte(first, '.')+1:], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src := newObjects(restart.objects...)
					p := newPoller(t, follow(t, src, restart.before))
					p.hasCluster("")
					p.routesTo("")
					p.ask(discovery.ListenerType)
					for _, missed := range restart.missed {
						src.set(missed...)
					}
					restarted := p.at(follow(t, src, restart.after))
					if restart.change != nil {
						src.set(restart.change...)
					}
					time.Sleep(time.Second)
					inUse(t, restarted, first)
				})
			})
		}
	}
}

var routedCluster = regexp.MustCompile(`"cluster":"([^"]+)"`)

// inUse polls until nothing changes and looks after each poll for a cluster that
// a route in use leads to.
func inUse(t *testing.T, p poller, first string) {
	t.Helper()
	check := func(after string) {
		t.Helper()
		clusters := resourceNames(t, p.has[discovery.ClusterType])
		routed := routedCluster.FindAllSubmatch(p.has[discovery.RouteType].Body, -1)
		if len(routed) == 0 {
			t.Fatal("no routes to clusters")
		}
		for _, found := range routed {
			if name := string(found[1]); !slices.Contains(clusters, name) {
				t.Errorf("after a poll for %s: a route to %s, which is not there", after, name)
			}
		}
	}
	if first == discovery.RouteType {
		p.routesTo("")
		check("routes")
	}
	for range 12 {
		p.hasCluster("")
		check("clusters")
		time.Sleep(time.Second)
		p.routesTo("")
		check("routes")
		p.ask(discovery.ListenerType)
		time.Sleep(mesh.DefaultSettings().DiscoveryRefreshDelay)
	}
	fresh := newPoller(t, p.s)
	if want := fresh.ask(discovery.ClusterType); !slices.Equal(resourceNames(t, p.has[discovery.ClusterType]), resourceNames(t, want)) {
		t.Errorf("clusters in the end: %v, want %v", resourceNames(t, p.has[discovery.ClusterType]), resourceNames(t, want))
	}
}

// TestHandoverOfManyChanges: the proxy never has a route without its cluster,
// however many changes come between two of its polls.
func TestHandoverOfManyChanges(t *testing.T) {
	inHandover(t, func(p poller, src *objects) {
		for _, version := range strings.Fields("v3 v4 v5 v6 v7 v8 v9 v10 v11 v12") {
			src.set(service(t, "web.example", "10.1.0.1"), toVersion(t, version))
			time.Sleep(time.Second)
			p.want("route to v1 while no newer cluster was fetched", p.routesTo(clusterOf("v1")), true)
		}
		p.want("cluster v1", p.hasCluster(clusterOf("v1")), true)
		p.want("cluster v12", p.hasCluster(clusterOf("v12")), true)
		time.Sleep(time.Second)
		p.want("route to v12", p.routesTo(clusterOf("v12")), true)
	})
}

// TestNoHandoverWithoutClusters: who asks for routes only, as a person with
// curl does, is told what is in force.
func TestNoHandoverWithoutClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, toVersion(t, "v1"))
		p := newPoller(t, follow(t, src, discovery.Options{}))
		p.want("route to v1 at first", p.routesTo(clusterOf("v1")), true)
		src.set(web, toVersion(t, "v2"))
		time.Sleep(time.Second)
		p.want("route to v2", p.routesTo(clusterOf("v2")), true)
	})
}

// TestHandoverAtTheProxysPace: a proxy that polls clusters more seldom than
// the mesh's settings say is waited for.
func TestHandoverAtTheProxysPace(t *testing.T) {
	inHandover(t, func(p poller, src *objects) {
		p.hasCluster("")
		pace := 3 * mesh.DefaultSettings().DiscoveryRefreshDelay
		for range 3 {
			time.Sleep(pace)
			p.routesTo("")
			p.hasCluster("")
		}
		src.set(service(p.T, "web.example", "10.1.0.1"), toVersion(p.T, "v3"))
		time.Sleep(2*pace - time.Second)
		p.want("route to v3 before its cluster was fetched", p.routesTo(clusterOf("v3")), false)
		p.hasCluster("")
		time.Sleep(time.Second)
		p.want("route to v3", p.routesTo(clusterOf("v3")), true)
	})
}

// TestHandoverAfterRestore: a store that was restored from a copy is at an older
// revision, and is what holds now.
func TestHandoverAfterRestore(t *testing.T) {
	inHandover(t, func(p poller, src *objects) {
		src.restore(-100)
		src.set(service(p.T, "web.example", "10.1.0.1"), toVersion(p.T, "restored"))
		time.Sleep(time.Second)
		p.want("cluster of the restored rule", p.hasCluster(clusterOf("restored")), true)
		time.Sleep(time.Second)
		p.want("route of the restored rule", p.routesTo(clusterOf("restored")), true)
	})
}

// TestHandoverForgetsInventedTables: the names in a poll are the client's, and
// so must cost nothing that lasts.
func TestHandoverForgetsInventedTables(t *testing.T) {
	inHandover(t, func(p poller, _ *objects) {
		p.hasCluster("")
		v3(p.T, p.s, discovery.RouteType, nodeA, "4711")
		time.Sleep(time.Second)
		p.routesTo("")
		p.routesTo("")
		time.Sleep(time.Second)
		p.want("cluster v1 after its last route", p.hasCluster(clusterOf("v1")), false)
	})
}

// TestNoHandoverForSameClusters: a change that needs no other clusters is
// live with the next poll for routes.
func TestNoHandoverForSameClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, timeout(t, "web.example", 3))
		p := newPoller(t, follow(t, src, discovery.Options{}))
		p.hasCluster("")
		before := v3(t, p.s, discovery.RouteType, nodeA, "80")
		src.set(web, timeout(t, "web.example", 4))
		time.Sleep(time.Second)
		if after := v3(t, p.s, discovery.RouteType, nodeA, "80"); after.Version == before.Version {
			t.Error("the new time-out is not told")
		}
	})
}

// TestAnotherReplicaWithdrawsNothingInUse: a proxy that polls comes from a replica to
// another one, and back, with what it was told there meanwhile.
func TestAnotherReplicaWithdrawsNothingInUse(t *testing.T) {
	for _, first := range []string{discovery.ClusterType, discovery.RouteType} {
		t.Run("first "+first[strings.LastIndexByte(first, '.')+1:], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// With an instance, the proxy's view is no other one's.
				web, own := service(t, "web.example", "10.1.0.1"), service(t, "own.example", strings.Split(nodeA, "~")[1])
				src := newObjects(web, own)
				p := newPoller(t, follow(t, src, discovery.Options{}))
				other := follow(t, src, discovery.Options{})
				p.hasCluster("")
				p.routesTo("")
				for range 4 {
					src.set(web, own, toVersion(t, "v1"))
					time.Sleep(time.Second)
					inUse(t, p, discovery.ClusterType)
					src.set(web, own, toVersion(t, "v2"))
					time.Sleep(time.Second)
					was := p.s
					p = p.at(other)
					inUse(t, p, first)
					other = was
				}
			})
		})
	}
}

// TestARefusingProxyKeepsWhatAnotherReplicaSent: an Envoy that refuses one cluster applies
// the others and keeps its version. That version does not show that another replica has
// sent it clusters in between.
func TestARefusingProxyKeepsWhatAnotherReplicaSent(t *testing.T) {
	for _, byTurns := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("by turns %t, refuses late %t", byTurns, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { refuseElsewhere(t, byTurns, late) })
			})
		}
	}
}

// refuseElsewhere has a proxy that refuses a part of its clusters and goes to another
// replica and back, which it has done before if it polls both by turns. If late, it begins
// to refuse at the other replica.
func refuseElsewhere(t *testing.T, byTurns, late bool) {
	away := 10 * time.Second
	if byTurns {
		away = time.Second
	}
	web, own := service(t, "web.example", "10.1.0.1"), service(t, "own.example", strings.Split(nodeA, "~")[1])
	src := newObjects(web, own, toVersion(t, "v1"))
	p := newPoller(t, follow(t, src, discovery.Options{}))
	other := p.at(follow(t, src, discovery.Options{}))
	p.hasCluster("")
	p.routesTo("")
	inUse(t, p, discovery.ClusterType)
	if byTurns {
		src.set(web, own, toVersion(t, "v0"))
		time.Sleep(time.Second)
		inUse(t, other, discovery.ClusterType)
		src.set(web, own, toVersion(t, "v1"))
		time.Sleep(time.Second)
		inUse(t, p, discovery.ClusterType)
	}
	p.kept[discovery.ClusterType] = p.has[discovery.ClusterType].Version
	if !late {
		src.set(web, own, service(t, "new.example", "10.1.0.2"), toVersion(t, "v1"))
		time.Sleep(time.Second)
		inUse(t, p, discovery.ClusterType)
	}
	for range 3 {
		p.hasCluster("")
		p.routesTo("")
		time.Sleep(time.Second)
	}
	src.set(web, own, toVersion(t, "v2"))
	time.Sleep(away / 2)
	for range 3 {
		other.hasCluster("")
		time.Sleep(300 * time.Millisecond)
		other.routesTo("")
	}
	p.want("route to v2 from the other replica", other.routesTo(clusterOf("v2")), true)
	src.set(web, own, toVersion(t, "v3"))
	time.Sleep(away / 2)
	for range 5 {
		inUse(t, p, discovery.ClusterType)
	}
	p.want("route to v3 at the end", p.routesTo(clusterOf("v3")), true)
}

// TestNewcomerSaysLateWhatItRoutesBy: its polls for routes may have gone to a replica
// that does not answer.
func TestNewcomerSaysLateWhatItRoutesBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, toVersion(t, "v1"))
		p := newPoller(t, follow(t, src, discovery.Options{}))
		other := follow(t, src, discovery.Options{})
		p.hasCluster("")
		p.routesTo("")
		src.set(web, toVersion(t, "v2"))
		time.Sleep(time.Second)
		p = p.at(other)
		p.want("cluster v1 at first", p.hasCluster(clusterOf("v1")), true)
		for range 3 * 5 {
			time.Sleep(mesh.DefaultSettings().DiscoveryRefreshDelay / 5)
			p.want("cluster v1 of a proxy that is only late", p.hasCluster(clusterOf("v1")), true)
		}
	})
}
