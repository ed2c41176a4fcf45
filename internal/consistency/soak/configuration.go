package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/schema"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// types are those of resources, in the order in which a proxy asks for them.
var types = []string{clusterType, endpointType, listenerType, routeType}

// mark shows in a resource which write of an object it is from.
type mark struct {
	schema.Key
	number int
}

// held is a resource that a proxy has.
type held struct {
	version string
	marks   []mark
	// refers are the names of the resources of the next type that it refers to.
	refers []string
}

// configuration is what a proxy has.
type configuration map[string]*ofType // by type

// ofType is what a proxy has of a type.
type ofType struct {
	version   string // of the last response that was acked, in the state of the world
	resources map[string]*held
	wanted    map[string]bool // names that the proxy subscribes to, except for wildcards
}

func newConfiguration() configuration {
	c := configuration{}
	for _, t := range types {
		c[t] = &ofType{resources: map[string]*held{}, wanted: map[string]bool{}}
	}
	return c
}

// marks returns the number of the write of each object.
func (c configuration) marks() map[schema.Key]int {
	all := map[schema.Key]int{}
	for _, t := range c {
		for _, r := range t.resources {
			for _, m := range r.marks {
				all[m.Key] = m.number
			}
		}
	}
	return all
}

// isNamed reports whether a proxy asks for resources of a type by their names, which are in
// resources of another type.
func isNamed(typeURL string) (in string, is bool) {
	switch typeURL {
	case endpointType:
		return clusterType, true
	case routeType:
		return listenerType, true
	}
	return "", false
}

// refer updates the names that the proxy wants of the types that resources of a type refer to.
// It returns the type, and the names that are new and gone.
func (c configuration) refer(typeURL string) (to string, added, gone []string) {
	for _, t := range types {
		if in, is := isNamed(t); is && in == typeURL {
			to = t
		}
	}
	if to == "" {
		return "", nil, nil
	}
	names := map[string]bool{}
	for _, r := range c[typeURL].resources {
		for _, name := range r.refers {
			names[name] = true
		}
	}
	for name := range names {
		if !c[to].wanted[name] {
			added = append(added, name)
		}
	}
	for name := range c[to].wanted {
		if !names[name] {
			gone = append(gone, name)
			delete(c[to].resources, name)
		}
	}
	c[to].wanted = names
	slices.Sort(added)
	return to, added, gone
}

func (t *ofType) names() []string { return slices.Sorted(maps.Keys(t.wanted)) }

// readResource returns the name of a resource, and what a proxy keeps of it.
func readResource(from *anypb.Any, version string) (name string, r *held, err error) {
	r = &held{version: version}
	switch from.GetTypeUrl() {
	case clusterType:
		name, err = r.cluster(from)
	case endpointType:
		name, err = r.endpoints(from)
	case listenerType:
		name, err = r.listener(from)
	case routeType:
		name, err = r.routes(from)
	default:
		err = fmt.Errorf("a resource of type %q", from.GetTypeUrl())
	}
	return name, r, err
}

func (r *held) mark(kind, host string, number int) {
	if namespace, name, ok := serviceOf(host); ok && number > 0 {
		r.marks = append(r.marks, mark{schema.Key{Kind: kind, Namespace: namespace, Name: name}, number})
	}
}

func (r *held) cluster(from *anypb.Any) (string, error) {
	var c clusterv3.Cluster
	if err := from.UnmarshalTo(&c); err != nil {
		return "", err
	}
	if c.GetType() == clusterv3.Cluster_EDS {
		name := c.GetEdsClusterConfig().GetServiceName()
		if name == "" {
			name = c.GetName()
		}
		r.refers = []string{name}
	}
	r.mark("DestinationRule", c.GetName(), int(c.GetConnectTimeout().AsDuration().Milliseconds())-connectTimeoutBase)
	return c.GetName(), nil
}

func (r *held) endpoints(from *anypb.Any) (string, error) {
	var a endpointv3.ClusterLoadAssignment
	if err := from.UnmarshalTo(&a); err != nil {
		return "", err
	}
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			parts := strings.Split(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), ".")
			if len(parts) != 4 || parts[0] != "10" || len(parts[1]) != 3 {
				continue
			}
			high, _ := strconv.Atoi(parts[2])
			low, _ := strconv.Atoi(parts[3])
			r.mark("ServiceEntry", a.GetClusterName(), high*250+low-1)
		}
	}
	return a.GetClusterName(), nil
}

func (r *held) listener(from *anypb.Any) (string, error) {
	var l listenerv3.Listener
	if err := from.UnmarshalTo(&l); err != nil {
		return "", err
	}
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, filter := range chain.GetFilters() {
			if err := r.filter(filter.GetTypedConfig()); err != nil {
				return "", err
			}
		}
	}
	return l.GetName(), nil
}

func (r *held) filter(config *anypb.Any) error {
	var manager hcmv3.HttpConnectionManager
	var forwards tcpv3.TcpProxy
	switch {
	case config.MessageIs(&manager):
		if err := config.UnmarshalTo(&manager); err != nil {
			return err
		}
		if name := manager.GetRds().GetRouteConfigName(); name != "" {
			r.refers = append(r.refers, name)
		}
	case config.MessageIs(&forwards):
		if err := config.UnmarshalTo(&forwards); err != nil {
			return err
		}
		r.mark("DestinationRule", forwards.GetCluster(), int(forwards.GetIdleTimeout().AsDuration().Seconds())-idleTimeoutBase)
	}
	return nil
}

func (r *held) routes(from *anypb.Any) (string, error) {
	var table routev3.RouteConfiguration
	if err := from.UnmarshalTo(&table); err != nil {
		return "", err
	}
	for _, host := range table.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			r.headers(route.GetRequestHeadersToAdd())
			for _, c := range route.GetRoute().GetWeightedClusters().GetClusters() {
				r.headers(c.GetRequestHeadersToAdd())
			}
		}
	}
	return table.GetName(), nil
}

func (r *held) headers(added []*corev3.HeaderValueOption) {
	for _, h := range added {
		parts := strings.Split(h.GetHeader().GetValue(), "/")
		if h.GetHeader().GetKey() != markHeader || len(parts) != 4 {
			continue
		}
		number, _ := strconv.Atoi(parts[3])
		r.marks = append(r.marks, mark{schema.Key{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, number})
	}
}
