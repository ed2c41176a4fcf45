package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// shop is a ServiceEntry whose port has a name and whose instances have a version.
func shop(t testing.TB, port, version string, more ...string) *schema.Object {
	return object(t, "ServiceEntry", "shop", fmt.Sprintf(
		`{"hosts":["shop.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"targetPort":8080,"name":%q,"protocol":"HTTP"}],`+
			`"endpoints":[{"address":"10.1.0.1","labels":{"version":%q}}]%s}`, port, version, strings.Join(more, "")))
}

// toSubset leads shop.example to the instances of one version of a host.
func toSubset(t testing.TB, rule, host, version string) []*schema.Object {
	return []*schema.Object{
		object(t, "DestinationRule", host, fmt.Sprintf(`{"host":%q,"subsets":[{"name":"s","labels":{"version":%q}},{"name":"other","labels":{"version":"v5"}}]}`, host, version)),
		object(t, "VirtualService", rule, fmt.Sprintf(`{"hosts":["shop.example"],"http":[{"route":[{"destination":{"host":%q,"subset":"s"}}]}]}`, host)),
	}
}

// exchanges are pairs of states. Each way, one write takes all instances from a set of
// endpoints, and the routes with them.
func exchanges(t testing.TB) map[string][2][]*schema.Object {
	web, private := shop(t, "web", "v1"), shop(t, "http", "v1", `,"exportTo":["."]`)
	v1, v9 := shop(t, "http", "v1"), shop(t, "http", "v9")
	named := func(name string) *schema.Object {
		return object(t, "ServiceEntry", name, fmt.Sprintf(
			`{"hosts":["%s.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],`+
				`"endpoints":[{"address":"10.1.0.2","labels":{"version":"v1"}}]}`, name))
	}
	return map[string][2][]*schema.Object{
		"a port has another name":       {{v1}, {web}},
		"exportTo":                      {{v1}, {private}},
		"instances and a subset change": {append(toSubset(t, "shop", "shop.example", "v1"), v1), append(toSubset(t, "shop", "shop.example", "v9"), v9)},
		"a rule has another name":       {append(toSubset(t, "shop", "shop.example", "v1"), v1), append(toSubset(t, "store", "shop.example", "v1"), v1)},
		"a service replaces another": {
			append(toSubset(t, "shop", "blue.example", "v1"), v1, named("blue")),
			append(toSubset(t, "shop", "green.example", "v1"), v1, named("green")),
		},
	}
}

// polledEnvoy polls like an Envoy: for each set of endpoints by itself, and at once for that
// of a new cluster.
type polledEnvoy struct {
	*testing.T
	s    *discovery.Publisher
	has  map[string]discovery.Answer // by type and name
	sets map[string]string           // of endpoints, by cluster; "" for clusters without
}

func (e *polledEnvoy) ask(typeURL, name string) string {
	e.Helper()
	var names []string
	if name != "" {
		names = []string{name}
	}
	had := e.has[typeURL+name]
	a, err := e.s.V3(typeURL, mesh.Node{ID: nodeA}, had.Version, names)
	if err != nil {
		e.Fatal(err)
	}
	if a.Version != had.Version {
		e.has[typeURL+name] = a
	}
	return string(e.has[typeURL+name].Body)
}

// poll polls for one type: everything that the proxy needs of it.
func (e *polledEnvoy) poll(typeURL string) {
	e.Helper()
	switch typeURL {
	case discovery.ClusterType:
		e.clusters(e.ask(typeURL, ""))
	case discovery.EndpointType:
		for _, set := range e.sets {
			if set != "" {
				e.ask(typeURL, set)
			}
		}
	case discovery.RouteType:
		e.ask(typeURL, "80")
	default:
		e.ask(typeURL, "")
	}
	e.check(typeURL)
}

func (e *polledEnvoy) clusters(body string) {
	e.Helper()
	var answer struct {
		Resources []struct {
			Name             string
			EdsClusterConfig struct {
				ServiceName string `json:"service_name"`
			} `json:"eds_cluster_config"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		e.Fatal(err)
	}
	before := e.sets
	e.sets = map[string]string{}
	for _, c := range answer.Resources {
		set := c.EdsClusterConfig.ServiceName
		if e.sets[c.Name] = set; set != "" && before[c.Name] == "" {
			e.ask(discovery.EndpointType, set)
		}
	}
}

// check checks that each route leads to a cluster with instances.
func (e *polledEnvoy) check(after string) {
	e.Helper()
	routes := string(e.has[discovery.RouteType+"80"].Body)
	for _, part := range strings.Split(routes, `"cluster":"`)[1:] {
		cluster, _, _ := strings.Cut(part, `"`)
		set, known := e.sets[cluster]
		if !known {
			e.Fatalf("after a poll for %s, a route leads to cluster %s, which the proxy does not have", after, cluster)
		}
		if set != "" && !strings.Contains(string(e.has[discovery.EndpointType+set].Body), `"address"`) {
			e.Fatalf("after a poll for %s, a route leads to cluster %s, which has no instances", after, cluster)
		}
	}
}

// TestPolledRoutesNeverLeadToNoInstances: in whatever order a proxy polls, a set of endpoints
// keeps its instances until the routes have left it, and then is as the mesh has it.
func TestPolledRoutesNeverLeadToNoInstances(t *testing.T) {
	types := []string{discovery.ClusterType, discovery.EndpointType, discovery.ListenerType, discovery.RouteType}
	for name, states := range exchanges(t) {
		for turn := range types {
			for _, reverse := range []bool{false, true} {
				order := slices.Concat(types[turn:], types[:turn])
				if reverse {
					slices.Reverse(order)
				}
				t.Run(fmt.Sprintf("%s/%d %t", name, turn, reverse), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						src := newObjects(states[0]...)
						e := &polledEnvoy{t, follow(t, src, discovery.Options{}), map[string]discovery.Answer{}, map[string]string{}}
						for _, typeURL := range types {
							e.poll(typeURL) // Its first polls have an order.
						}
						round := func() {
							for _, typeURL := range order {
								e.poll(typeURL)
								time.Sleep(time.Second)
							}
						}
						for i := range 4 {
							src.set(states[i%2]...)
							time.Sleep(time.Second)
							for range 6 {
								round()
							}
							e.poll(discovery.ClusterType)
							if len(e.sets) == 0 || strings.Count(string(e.has[discovery.RouteType+"80"].Body), `"cluster":"`) == 0 {
								t.Fatal("the proxy has no routes to the shop")
							}
							fresh := &polledEnvoy{t, e.s, map[string]discovery.Answer{}, map[string]string{}}
							fresh.poll(discovery.ClusterType)
							for cluster, set := range fresh.sets {
								if e.sets[cluster] != set || string(e.has[discovery.EndpointType+set].Body) != string(fresh.has[discovery.EndpointType+set].Body) {
									t.Errorf("cluster %s: the proxy has other endpoints than a fresh one", cluster)
								}
							}
						}
					})
				})
			}
		}
	}
}

// TestAPollerThatRefusesItsRoutesLearnsThatInstancesAreGone: the wait for its routes ends.
func TestAPollerThatRefusesItsRoutesLearnsThatInstancesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const set = "shop.example|http"
		src := newObjects(shop(t, "http", "v1"))
		e := &polledEnvoy{t, follow(t, src, discovery.Options{}), map[string]discovery.Answer{}, map[string]string{}}
		poll := func() (hasInstances bool) {
			e.ask(discovery.ClusterType, "")
			had := e.has[discovery.RouteType+"80"]
			e.ask(discovery.RouteType, "80")
			if had.Version != "" {
				e.has[discovery.RouteType+"80"] = had // It refuses what is new.
			}
			return strings.Contains(e.ask(discovery.EndpointType, set), `"address"`)
		}
		poll()
		poll()
		src.set(shop(t, "web", "v1"))
		time.Sleep(time.Second)
		for range 10 {
			if !poll() {
				t.Fatal("the set that the refused routes leave is empty at once")
			}
			time.Sleep(time.Second)
		}
		for i := 0; poll(); i++ {
			if i == 1000 {
				t.Fatal("the set that no service has stays as it was for ever")
			}
			time.Sleep(time.Second)
		}
	})
}

// TestPolledInstancesThatAreLostAreToldAtOnce: a set whose instances are gone waits for no
// route that stays.
func TestPolledInstancesThatAreLostAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(shop(t, "http", "v1"))
		e := &polledEnvoy{t, follow(t, src, discovery.Options{}), map[string]discovery.Answer{}, map[string]string{}}
		for range 3 {
			for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType, discovery.RouteType, discovery.EndpointType} {
				e.poll(typeURL)
			}
			time.Sleep(time.Second)
		}
		src.set(object(t, "ServiceEntry", "shop",
			`{"hosts":["shop.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"targetPort":8080,"name":"http","protocol":"HTTP"}]}`))
		time.Sleep(time.Second)
		if body := e.ask(discovery.EndpointType, "shop.example|http"); strings.Contains(body, `"address"`) {
			t.Errorf("the instances are still there: %s", body)
		}
	})
}

// TestEndpointsWaitForTheViews: while views are being compiled, proxies are still at views
// whose endpoints are already gone. A proxy that asks for endpoints then keeps its instances.
func TestEndpointsWaitForTheViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(shop(t, "http", "v1"))
		var compiling func()
		s := followWith(t, src, discovery.Options{}, &faults{proxy: func(mesh.Traits) {
			if compiling != nil {
				compiling()
			}
		}})
		e := &polledEnvoy{t, s, map[string]discovery.Answer{}, map[string]string{}}
		for range 3 {
			for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType, discovery.RouteType, discovery.EndpointType} {
				e.poll(typeURL)
			}
			time.Sleep(time.Second)
		}
		st, err := s.Connect(mesh.Node{ID: nodeB}, discovery.StateOfTheWorld)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		takes := func() (sent []string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for {
				r, err := st.Next(ctx)
				if err != nil {
					return sent
				}
				sent = append(sent, r.TypeURL)
				if err := st.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce, Version: r.Version, Names: namesOnStream[r.TypeURL]}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for typeURL, names := range namesOnStream {
			if err := st.Receive(discovery.Request{TypeURL: typeURL, Names: names}); err != nil {
				t.Fatal(err)
			}
		}
		takes()

		asked := 0
		compiling = func() {
			asked++
			e.poll(discovery.EndpointType)
			st.Awake()
			if sent := takes(); slices.Contains(sent, discovery.EndpointType) {
				t.Errorf("sent %v while views are being compiled", sent)
			}
		}
		src.set(shop(t, "web", "v1"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if asked == 0 {
			t.Fatal("nothing was compiled")
		}
		compiling = nil
	})
}

// namesOnStream are the names that a proxy beside shop.example asks for over a stream.
var namesOnStream = map[string][]string{
	discovery.ClusterType: nil, discovery.EndpointType: {"shop.example|http"}, discovery.ListenerType: nil, discovery.RouteType: {"80"},
}
