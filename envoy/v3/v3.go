// Package v3 encodes the IR as Envoy's v3 resources, for REST and for streams: clusters,
// listeners, route configurations and endpoint assignments. The files for a resource have
// the same names as in envoy/v1:
//
//	listeners.go      addresses of listeners, and what all of them have
//	filterchains.go   their chains, by server name and destination
//	httplisteners.go  the HTTP connection manager and its filters
//	tcplisteners.go   the TCP proxy and its filters
//	access.go         the RBAC filters of policies about callers
//	ondemand.go       the filter that asks for hosts, and tables that may lack some
//	tokens.go         the filters that verify JSON Web Tokens
//	routes.go         route configurations, virtual hosts and routes
//	match.go          conditions of routes
//	cors.go, faults.go, retries.go
//	                  actions of routes
//	closed.go         routes and hosts that Envoy would refuse answer 503
//	clusters.go       clusters: balancing.go, connections.go, healthcheck.go
//	endpoints.go      endpoint assignments
//	tls.go, mutualtls.go
//	                  TLS of listeners and clusters
//	proxyless*.go     the same resources for gRPC programs without a proxy
//	accept.go         Check: whether an Envoy accepts a message (inspect.go walks it)
//	refusals*.go      rules of Envoy that its declared constraints do not say
//
// Each resource is encoded separately, and so is each virtual host of a table (Cluster,
// Listener, RouteTable, VirtualHost, Endpoints). So an unchanged part is not encoded again.
// Clusters, Listeners and Routes return whole answers.
//
// All functions are pure, the order is that of the IR, and embedded messages are marshalled
// deterministically: equal IR gives equal bytes. If v3 changed a default, the value of v1
// is written if the IR promises it: no timeout means none. A part that v3 cannot express
// becomes a Problem of the object from which it follows.
package v3

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// requestTimeout bounds one poll. Envoy's own default of 1 s is short for a
// server that may be starting.
const requestTimeout = 5 * time.Second

// typed embeds a message. The messages here have valid text only, so it cannot fail. If it
// does, it panics, and the caller of the compiler contains the panic.
func typed(m proto.Message) *anypb.Any {
	out := &anypb.Any{}
	if err := anypb.MarshalFrom(out, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err)
	}
	return out
}

// fixed are embedded messages that never change. They are in most resources, and pass
// Check once, when the program begins.
var fixed = map[*anypb.Any]bool{}

func fix(m Message) *anypb.Any {
	out := typed(m)
	if err := Check(m); err != nil {
		panic(err)
	}
	fixed[out] = true
	return out
}

// Source is where an Envoy gets the resources to which a resource refers: the endpoints of
// a cluster, the routes of a listener.
type Source struct {
	delay    time.Duration
	streamed bool
	onDemand bool
}

// Streamed is the stream that brought the resource itself.
var Streamed = Source{streamed: true}

// OnDemand is Streamed for listeners whose proxy asks for hosts that its route tables lack.
var OnDemand = Source{streamed: true, onDemand: true}

// Polled is this server by polls, with a delay between them.
func Polled(delay time.Duration) Source { return Source{delay: delay} }

func (s Source) config() *corev3.ConfigSource {
	if s.streamed {
		return &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		}
	}
	return &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:             corev3.ApiConfigSource_REST,
			TransportApiVersion: corev3.ApiVersion_V3,
			ClusterNames:        []string{envoy.DiscoveryCluster},
			RefreshDelay:        durationpb.New(s.delay),
			RequestTimeout:      durationpb.New(requestTimeout),
		}},
	}
}

func address(host string, port int) *corev3.Address {
	if path, ok := (ir.Endpoint{Host: host}).Socket(); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

// positive returns nil for 0, which means Envoy's default.
func positive(n int) *wrapperspb.UInt32Value {
	if n <= 0 {
		return nil
	}
	return wrapperspb.UInt32(uint32(n))
}

// positiveDuration returns nil for 0, which means Envoy's default.
func positiveDuration(d time.Duration) *durationpb.Duration {
	if d <= 0 {
		return nil
	}
	return durationpb.New(d)
}
