package ads

import (
	"context"
	"fmt"
	"net"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/peer"

	"github.com/pilot-api/pilot-api/discovery"
)

// message is one of a client's.
type message struct {
	node    *corev3.Node // in the first one of a stream
	request discovery.Request
}

func worldRequest(r *discoveryv3.DiscoveryRequest) discovery.Request {
	return discovery.Request{
		TypeURL: r.GetTypeUrl(),
		Nonce:   r.GetResponseNonce(),
		Refused: words(r.GetErrorDetail()),
		Names:   r.GetResourceNames(),
		Version: r.GetVersionInfo(),
	}
}

func deltaRequest(r *discoveryv3.DeltaDiscoveryRequest) discovery.Request {
	return discovery.Request{
		TypeURL:     r.GetTypeUrl(),
		Nonce:       r.GetResponseNonce(),
		Refused:     words(r.GetErrorDetail()),
		Subscribe:   r.GetResourceNamesSubscribe(),
		Unsubscribe: r.GetResourceNamesUnsubscribe(),
		Initial:     r.GetInitialResourceVersions(),
	}
}

func words(s *statusv3.Status) *string {
	if s == nil {
		return nil
	}
	text := s.GetMessage()
	return &text
}

// generator is how Istio's agent says who asks: "grpc" for programs without a proxy.
const generator = "GENERATOR"

// proxyless reports whether it is gRPC that asks, and no Envoy.
func (m message) proxyless() bool {
	return m.metadata(generator) == "grpc" || strings.HasPrefix(m.node.GetUserAgentName(), "gRPC")
}

// agent is what is known of the Envoy, or of gRPC, for people.
func (m message) agent(ctx context.Context) discovery.Agent {
	var a discovery.Agent
	if v := m.node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		a.Version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	if m.proxyless() {
		a.Version = strings.TrimSpace(m.node.GetUserAgentName() + " " + m.node.GetUserAgentVersion())
	}
	if p, ok := peer.FromContext(ctx); ok {
		a.Address, _, _ = net.SplitHostPort(p.Addr.String())
	}
	return a
}

// identity is who the proxy says it is.
func (m message) identity() (discovery.Node, error) {
	at := m.node.GetLocality()
	return discovery.NodeStatement{
		ID: m.node.GetId(), Metadata: m.metadata,
		Region: at.GetRegion(), Zone: at.GetZone(), SubZone: at.GetSubZone(),
	}.Node()
}

func (m message) metadata(name string) any {
	return m.node.GetMetadata().GetFields()[name].AsInterface()
}
