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
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

// message is one of a client's.
type message struct {
	who     *who // who sends it; nil but for the first one of a stream
	request discovery.Request
}

// who is what is read of a node. The rest of it, which may be much, is let go of.
type who struct {
	node      discovery.Node
	bad       error // why it can be nobody
	agent     discovery.Agent
	proxyless bool
}

// decoded makes a message of a variant's wire form.
type decoded func(text []byte) (*corev3.Node, discovery.Request, error)

func decodeWorld(text []byte) (*corev3.Node, discovery.Request, error) {
	r := &discoveryv3.DiscoveryRequest{}
	err := proto.Unmarshal(text, r)
	return r.GetNode(), worldRequest(r), err
}

func decodeDelta(text []byte) (*corev3.Node, discovery.Request, error) {
	r := &discoveryv3.DeltaDiscoveryRequest{}
	err := proto.Unmarshal(text, r)
	return r.GetNode(), deltaRequest(r), err
}

// sizeOf is about what a request takes while it is taken in.
func sizeOf(r discovery.Request) int64 {
	const header = 16 // of a string
	size := 0
	for _, names := range [][]string{r.Names, r.Subscribe, r.Unsubscribe} {
		for _, name := range names {
			size += header + len(name)
		}
	}
	for name, version := range r.Initial {
		size += 3*header + len(name) + len(version)
	}
	return int64(size)
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

type node struct{ *corev3.Node }

// read takes what counts out of a node.
func (n node) read(ctx context.Context) *who {
	w := &who{agent: n.agent(ctx), proxyless: n.proxyless()}
	w.node, w.bad = n.identity()
	return w
}

// proxyless reports whether it is gRPC that asks, and no Envoy.
func (n node) proxyless() bool {
	return n.metadata(generator) == "grpc" || strings.HasPrefix(n.GetUserAgentName(), "gRPC")
}

// agent is what is known of the Envoy, or of gRPC, for people.
func (n node) agent(ctx context.Context) discovery.Agent {
	var a discovery.Agent
	if v := n.GetUserAgentBuildVersion().GetVersion(); v != nil {
		a.Version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	if n.proxyless() {
		a.Version = strings.TrimSpace(bounded(n.GetUserAgentName()) + " " + bounded(n.GetUserAgentVersion()))
	}
	if p, ok := peer.FromContext(ctx); ok {
		a.Address, _, _ = net.SplitHostPort(p.Addr.String())
	}
	if c := connectionOf(ctx); c != nil && c.private {
		a.Address = discovery.ThisMachine
	}
	return a
}

// maxAgent bounds what a client may say of its program.
const maxAgent = 256

func bounded(text string) string { return terminal.Line(text[:min(len(text), maxAgent)]) }

// identity is who the proxy says it is.
func (n node) identity() (discovery.Node, error) {
	at := n.GetLocality()
	return discovery.NodeStatement{
		ID: n.GetId(), Metadata: n.metadata,
		Region: at.GetRegion(), Zone: at.GetZone(), SubZone: at.GetSubZone(),
	}.Node()
}

func (n node) metadata(name string) any {
	return n.GetMetadata().GetFields()[name].AsInterface()
}
