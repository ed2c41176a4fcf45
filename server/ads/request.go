package ads

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

// message is one message of a client.
type message struct {
	who     *who // the sender; set only for the first message of a stream
	request discovery.Request
	size    int64 // on the wire, in bytes
}

// who has the fields of a node that the server reads. The rest may be large and is
// dropped.
type who struct {
	node      discovery.Node
	bad       error // why the node is invalid
	agent     discovery.Agent
	proxyless bool
	// asksForHosts means that it is an Envoy which can ask for hosts on a delta stream.
	asksForHosts bool
}

// decoded decodes a message of one variant.
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

// sizeOf returns the approximate memory of a request while it is processed, in
// bytes.
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

// generator is the metadata field in which Istio's agent names its kind of client:
// "grpc" for programs without a proxy.
const generator = "GENERATOR"

type node struct{ *corev3.Node }

// read returns the relevant parts of a node.
func (n node) read(ctx context.Context) *who {
	w := &who{agent: n.agent(ctx), proxyless: n.proxyless(), asksForHosts: n.asksForHosts()}
	w.node, w.bad = n.identity()
	return w
}

// proxyless reports whether the client is gRPC and not an Envoy.
func (n node) proxyless() bool {
	return n.metadata(generator) == "grpc" || strings.HasPrefix(n.GetUserAgentName(), "gRPC")
}

// onDemandFilter is the extension of an Envoy that asks for hosts.
const onDemandFilter = "envoy.filters.http.on_demand"

// asksForHosts reports whether the client is an Envoy which can ask for hosts on its stream:
// a version that was tested, with the filter.
func (n node) asksForHosts() bool {
	v := n.GetUserAgentBuildVersion().GetVersion()
	if v.GetMajorNumber() < 1 || v.GetMajorNumber() == 1 && v.GetMinorNumber() < 40 {
		return false
	}
	return slices.ContainsFunc(n.GetExtensions(), func(e *corev3.Extension) bool { return e.GetName() == onDemandFilter && !e.GetDisabled() })
}

// agent describes the Envoy, or gRPC, for people.
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

// maxAgent bounds the name and the version that a client states for its program.
const maxAgent = 256

func bounded(text string) string { return terminal.Line(text[:min(len(text), maxAgent)]) }

// identity returns the identity that the proxy states.
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
