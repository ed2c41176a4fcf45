package v3

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/ir"
)

// The metadata by which a cluster chooses the transport to an endpoint. The words are
// Istio's.
const (
	socketMatch  = "envoy.transport_socket_match"
	tlsMode      = "tlsMode"
	mutualMode   = "istio"
	disabledMode = "disabled"

	rawTransportSocket = "envoy.transport_sockets.raw_buffer"
)

// mutualTLS returns the transports of a cluster: TLS to the endpoints that take it, plain text
// to the others. It returns nil for a cluster with one transport.
func mutualTLS(t *ir.ClientTLS, from Source) []*clusterv3.Cluster_TransportSocketMatch {
	if t == nil {
		return nil
	}
	return []*clusterv3.Cluster_TransportSocketMatch{
		{Name: tlsMode + "-" + mutualMode, Match: mutualMatch, TransportSocket: clientTLS(t, from)},
		{Name: tlsMode + "-" + disabledMode, Match: &structpb.Struct{}, TransportSocket: plainText},
	}
}

var (
	mutualMatch = &structpb.Struct{Fields: map[string]*structpb.Value{tlsMode: structpb.NewStringValue(mutualMode)}}
	plainText   = &corev3.TransportSocket{
		Name:       rawTransportSocket,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: fix(&rawv3.RawBuffer{})},
	}
	mutualEndpoint = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{socketMatch: mutualMatch}}
)
