package ads_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// envoy is a client that behaves like an Envoy: it subscribes to what it is
// referred to, withholds the ACK of clusters that warm, and keeps what it received.
// It fails the test as soon as it would route to a cluster that it does not have.
type envoy struct {
	*client
	has     map[string]map[string]*anypb.Any
	asked   map[string]bool // by type
	warming map[string]bool // endpoint sets that clusters wait for
	held    []response      // for clusters, not acknowledged yet
	// refuses returns why the client refuses a response; refuse is false if it accepts
	// it.
	refuses func(response) (words string, refuse bool)
	// never holds the clusters that it refused before it had any of the name.
	never map[string]bool
	// serving: the test fails when a route leads to a cluster without instances.
	serving bool
	// unresolved: clusters with names to resolve warm until the proxy gives up on them.
	unresolved bool
	// draining: connections of earlier listeners are open, and their route tables stay.
	draining bool
	seen     []response
	unread   []response // received and not processed yet
}

func newEnvoy(c *client) *envoy {
	return &envoy{client: c, has: map[string]map[string]*anypb.Any{cds: {}, eds: {}, lds: {}, rds: {}},
		asked: map[string]bool{}, warming: map[string]bool{}, never: map[string]bool{},
		refuses: func(response) (string, bool) { return "", false }}
}

// start begins as an Envoy does, and goes on until everything is idle.
func (e *envoy) start() *envoy {
	e.t.Helper()
	e.ask(cds)
	e.play()
	return e
}

// again is the same Envoy on another stream, on which it states what it has.
func (e *envoy) again(c *client) {
	e.t.Helper()
	old := e.client
	old.end()
	c.t, c.version = old.t, old.version
	e.client, e.asked, e.held, e.unread = c, map[string]bool{}, nil, nil
	for _, typeURL := range []string{cds, eds, lds, rds} {
		if typeURL == cds || typeURL == lds || len(e.referred(typeURL)) > 0 {
			e.ask(typeURL)
		}
	}
}

// ask sends the first request of a type on this stream.
func (e *envoy) ask(typeURL string) {
	e.t.Helper()
	e.asked[typeURL] = true
	r := request{typeURL: typeURL, names: e.referred(typeURL)}
	e.names[typeURL] = map[string]bool{}
	for _, n := range r.names {
		e.names[typeURL][n] = true
	}
	if e.kind == world {
		r.version = e.version[typeURL]
	} else {
		r.initial = e.versions(typeURL)
	}
	e.say(r)
}

// versions returns the versions that the server made. An unchanged resource has the
// same.
func (e *envoy) versions(typeURL string) map[string]string {
	out := map[string]string{}
	for name := range e.has[typeURL] {
		out[name] = e.version[typeURL+" "+name]
	}
	return out
}

// referred returns the names of a type that the proxy needs.
func (e *envoy) referred(typeURL string) []string {
	names := map[string]bool{}
	switch typeURL {
	case eds:
		for _, a := range e.has[cds] {
			if c := decoded[*clusterv3.Cluster](e.t, a); c.GetType() == clusterv3.Cluster_EDS {
				names[c.GetEdsClusterConfig().GetServiceName()] = true
			}
		}
	case rds:
		if e.draining {
			for name := range e.has[rds] {
				names[name] = true
			}
		}
		for _, a := range e.has[lds] {
			visit(a, func(m proto.Message) {
				if h, ok := m.(*hcmv3.HttpConnectionManager); ok && h.GetRds() != nil {
					names[h.GetRds().GetRouteConfigName()] = true
				}
			})
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// play processes all responses until everything is idle.
func (e *envoy) play() {
	e.t.Helper()
	for range 1000 {
		e.release()
		all := append(e.unread, e.told()...)
		e.unread = nil
		if len(all) == 0 {
			return
		}
		for _, r := range all {
			e.take(r)
		}
	}
	e.t.Fatalf("told without end, at last %v", e.seen[len(e.seen)-3:])
}

// takeOne processes the first response, and leaves the rest for later.
func (e *envoy) takeOne() {
	e.t.Helper()
	if e.unread = append(e.unread, e.told()...); len(e.unread) > 0 {
		r := e.unread[0]
		e.unread = e.unread[1:]
		e.take(r)
	}
}

// take does what an Envoy does with one response.
func (e *envoy) take(r response) {
	e.t.Helper()
	r.taken = time.Now()
	e.seen = append(e.seen, r)
	if words, refuse := e.refuses(r); refuse {
		e.refuse(r, words)
		return
	}
	changed := e.apply(r)
	e.check(r)
	switch r.typeURL {
	case cds:
		e.client.version[cds] = r.version // A refusal states it before this is acknowledged.
		e.warm(changed)
		e.follow(eds)
		e.held = append(e.held, r)
		e.release()
	case eds:
		for name := range r.resources {
			delete(e.warming, name)
		}
		e.ack(r)
		e.release()
	case lds:
		e.follow(rds)
		e.ack(r)
	default:
		e.ack(r)
	}
	if !e.asked[lds] && len(e.warming) == 0 {
		e.ask(lds)
	}
}

func (e *envoy) refuse(r response, words string) {
	for name := range r.resources {
		if r.typeURL == cds && e.has[cds][name] == nil {
			e.never[name] = true
		}
	}
	e.nack(r, words)
	if r.typeURL == eds {
		// It no longer waits for what it refuses.
		for name := range r.resources {
			delete(e.warming, name)
		}
		e.release()
	}
}

// apply keeps the resources of a response, and returns the names of the new ones.
func (e *envoy) apply(r response) (changed []string) {
	has := e.has[r.typeURL]
	for name, a := range r.resources {
		if (r.typeURL == eds || r.typeURL == rds) && !e.names[r.typeURL][name] {
			continue // It is no longer subscribed to.
		}
		if has[name] == nil || !proto.Equal(has[name], a) {
			changed = append(changed, name)
		}
		has[name] = a
		e.version[r.typeURL+" "+name] = r.versions[name]
		if r.typeURL == cds {
			delete(e.never, name)
		}
	}
	if e.kind == world && (r.typeURL == cds || r.typeURL == lds) {
		maps.DeleteFunc(has, func(name string, _ *anypb.Any) bool { return r.resources[name] == nil })
	}
	for _, name := range r.removed {
		if r.typeURL == rds {
			e.t.Errorf("removed route table %s: an Envoy never becomes ready then", name)
		}
		delete(has, name)
	}
	return changed
}

// warm makes changed clusters wait for their endpoints.
func (e *envoy) warm(changed []string) {
	for _, name := range changed {
		if c := decoded[*clusterv3.Cluster](e.t, e.has[cds][name]); c.GetType() == clusterv3.Cluster_EDS {
			e.warming[c.GetEdsClusterConfig().GetServiceName()] = true
		}
	}
}

// release acknowledges clusters when none warms: of the state of the world only the
// newest, of delta one after the other.
func (e *envoy) release() {
	e.t.Helper()
	if len(e.warming) > 0 {
		return
	}
	warm := len(e.held)
	if i := slices.IndexFunc(e.held, e.resolves); i >= 0 {
		warm = i
	}
	all := e.held[:warm]
	if e.held = e.held[warm:]; len(all) > 0 && e.kind == world {
		all = all[len(all)-1:]
	}
	e.ack(all...)
}

// resolves reports whether a cluster of a response has a name to resolve, and the proxy has not
// given up yet.
func (e *envoy) resolves(r response) bool {
	if !e.unresolved || time.Since(r.taken) >= 15*time.Second {
		return false
	}
	for _, a := range r.resources {
		if t := decoded[*clusterv3.Cluster](e.t, a).GetType(); t == clusterv3.Cluster_STRICT_DNS || t == clusterv3.Cluster_LOGICAL_DNS {
			return true
		}
	}
	return false
}

// follow subscribes to what is referred to now, and unsubscribes from the rest.
func (e *envoy) follow(typeURL string) {
	e.t.Helper()
	needed := e.referred(typeURL)
	if !e.asked[typeURL] {
		if len(needed) > 0 {
			e.ask(typeURL)
		}
		return
	}
	var more, less []string
	for _, n := range needed {
		if !e.names[typeURL][n] {
			more = append(more, n)
		}
	}
	for n := range e.names[typeURL] {
		if !slices.Contains(needed, n) {
			less = append(less, n)
			delete(e.has[typeURL], n)
			delete(e.warming, n)
		}
	}
	if len(less) > 0 {
		e.unsubscribe(typeURL, less...)
	}
	if len(more) > 0 {
		e.subscribe(typeURL, more...)
	}
}

// check checks the promise of make before break.
func (e *envoy) check(after response) {
	e.t.Helper()
	for _, typeURL := range []string{lds, rds} {
		for name, a := range e.has[typeURL] {
			for _, cluster := range leadsTo(a) {
				if e.has[cds][cluster] == nil && !e.never[cluster] {
					e.t.Fatalf("%s leads to cluster %s, which the proxy does not have, after %v", name, cluster, after)
				}
				if e.serving && e.has[cds][cluster] != nil && !e.hasInstances(cluster) {
					e.t.Fatalf("%s leads to cluster %s, which has no instances, after %v", name, cluster, after)
				}
			}
		}
	}
}

// leadsTo returns the clusters that a resource names.
func leadsTo(a *anypb.Any) (clusters []string) {
	visit(a, func(m proto.Message) {
		name := ""
		switch m := m.(type) {
		case *routev3.RouteAction:
			name = m.GetCluster()
		case *routev3.WeightedCluster_ClusterWeight:
			name = m.GetName()
		case *routev3.RouteAction_RequestMirrorPolicy:
			name = m.GetCluster()
		case *tcpv3.TcpProxy:
			name = m.GetCluster()
		case *tcpv3.TcpProxy_WeightedCluster_ClusterWeight:
			name = m.GetName()
		}
		if name != "" {
			clusters = append(clusters, name)
		}
	})
	return clusters
}

// visit calls do with a message and all messages in it.
func visit(m proto.Message, do func(proto.Message)) {
	if a, ok := m.(*anypb.Any); ok {
		if inner, err := a.UnmarshalNew(); err == nil {
			visit(inner, do)
		}
		return
	}
	do(m)
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				if f.MapValue().Message() != nil {
					visit(v.Message().Interface(), do)
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message().Interface(), do)
			}
		default:
			visit(v.Message().Interface(), do)
		}
		return true
	})
}

// routesTo reports whether some route of the proxy leads to the cluster.
func (e *envoy) routesTo(cluster string) bool {
	for _, a := range e.has[rds] {
		if slices.Contains(leadsTo(a), cluster) {
			return true
		}
	}
	return false
}

// sameAs compares what two proxies have.
func (e *envoy) sameAs(t testing.TB, fresh *envoy) {
	t.Helper()
	for _, typeURL := range []string{cds, eds, lds, rds} {
		got, want := e.has[typeURL], fresh.has[typeURL]
		if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
			t.Errorf("has %v, a fresh one %v", g, w)
			continue
		}
		for name := range want {
			if !proto.Equal(got[name], want[name]) {
				t.Errorf("%s differs from a fresh one's:\n%v\n%v", name, got[name], want[name])
			}
		}
	}
}

var _ = (*listenerv3.Listener)(nil) // registered for its Any
