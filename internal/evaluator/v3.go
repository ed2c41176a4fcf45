package evaluator

import (
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// V3Resources are the resources of a v3 Envoy.
type V3Resources struct {
	Clusters  []*clusterv3.Cluster
	Listeners []*listenerv3.Listener
	Routes    []*routev3.RouteConfiguration
	Endpoints []*endpointv3.ClusterLoadAssignment
}

// ReadV3 reads the resources. The error lists everything that this package does not know
// and everything that an Envoy would refuse.
func ReadV3(in V3Resources) (*Proxy, error) {
	r := &v3Reader{tables: map[string][]*VirtualHost{}, ignorePort: map[string]bool{}, endpoints: map[string][]Endpoint{}}
	for _, e := range in.Endpoints {
		r.endpoints[e.GetClusterName()] = r.assignment(e)
	}
	for _, c := range in.Clusters {
		r.addCluster(r.cluster("cluster "+c.GetName(), c))
	}
	for _, t := range in.Routes {
		r.require(t.GetName() != "" && r.tables[t.GetName()] == nil, "table "+t.GetName(), "must have a name of its own")
		r.tables[t.GetName()] = r.table("table "+t.GetName(), t)
		r.ignorePort[t.GetName()] = t.GetIgnorePortInHostMatching()
	}
	for _, l := range in.Listeners {
		r.proxy.Listeners = append(r.proxy.Listeners, r.listener("listener "+l.GetName(), l))
	}
	return r.result()
}

type v3Reader struct {
	reader
	tables     map[string][]*VirtualHost
	ignorePort map[string]bool // by table
	endpoints  map[string][]Endpoint
}

// only fails for each field that is set but not in known, and for violations of the
// message's constraints.
func (r *v3Reader) only(at string, m proto.Message, known ...protoreflect.Name) {
	reflected := m.ProtoReflect()
	reflected.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		r.require(slices.Contains(known, f.Name()), at, "%s has %s, which is not known here", reflected.Descriptor().FullName(), f.Name())
		return true
	})
	if checked, ok := m.(interface{ Validate() error }); ok {
		if err := checked.Validate(); err != nil {
			r.fail(at, "%v", err)
		}
	}
}

// beyond returns the names of fields that are set and that v1 does not have.
func beyond(m proto.Message, fields ...protoreflect.Name) []string {
	var out []string
	reflected := m.ProtoReflect()
	for _, name := range fields {
		if f := reflected.Descriptor().Fields().ByName(name); reflected.IsValid() && reflected.Has(f) {
			out = append(out, string(name))
		}
	}
	return out
}

// unpack reads an embedded message, and reports whether it is of the type of into.
func (r *v3Reader) unpack(at string, from *anypb.Any, into proto.Message) bool {
	if err := from.UnmarshalTo(into); err != nil {
		r.fail(at, "%v", err)
		return false
	}
	return true
}

func (r *v3Reader) assignment(e *endpointv3.ClusterLoadAssignment) []Endpoint {
	at := "endpoints of " + e.GetClusterName()
	r.only(at, e, "cluster_name", "endpoints")
	out := []Endpoint{}
	for _, group := range e.GetEndpoints() {
		r.only(at, group, "locality", "lb_endpoints", "priority", "load_balancing_weight")
		if group.GetLocality() != nil {
			r.only(at, group.GetLocality(), "region", "zone", "sub_zone")
		}
		for _, member := range group.GetLbEndpoints() {
			r.only(at, member, "endpoint", "load_balancing_weight")
			r.only(at, member.GetEndpoint(), "address")
			out = append(out, Endpoint{
				Address: r.address(at, member.GetEndpoint().GetAddress()),
				Zone:    zoneText(group.GetLocality()),
				Weight:  number(member.GetLoadBalancingWeight(), 1),

				Priority: int(group.GetPriority()), Share: number(group.GetLoadBalancingWeight(), 0),
			})
		}
	}
	return out
}

func (r *v3Reader) address(at string, a *corev3.Address) string {
	if pipe := a.GetPipe(); pipe != nil {
		r.only(at, pipe, "path")
		return "unix://" + pipe.GetPath()
	}
	r.only(at, a, "socket_address")
	r.only(at, a.GetSocketAddress(), "address", "port_value")
	return hostPort(a.GetSocketAddress().GetAddress(), int(a.GetSocketAddress().GetPortValue()))
}

// file returns the path of a certificate or key.
func (r *v3Reader) file(at string, d *corev3.DataSource) string {
	if d == nil {
		return ""
	}
	r.only(at, d, "filename")
	return d.GetFilename()
}

// duration returns the value of an optional field.
func duration(d *durationpb.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.AsDuration()
}

// number returns the value of an optional field.
func number(n *wrapperspb.UInt32Value, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(n.GetValue())
}

// zoneText returns a locality in v1's form: the zone, or all parts.
func zoneText(l *corev3.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}
