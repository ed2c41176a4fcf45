package main

import (
	"context"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// adsResponse is a response of either variant of ADS.
type adsResponse struct {
	typeURL, nonce, version string
	resources               map[string]*held
	removed                 []string
}

// adsStream is a stream of either variant. Its requests say what the configuration has.
type adsStream interface {
	// begin sends the first request of a type.
	begin(typeURL string) error
	// refer asks for other names of a type.
	refer(typeURL string, added, gone []string) error
	// answer accepts a response, or refuses it in the words of a proxy.
	answer(r *adsResponse, refused string) error
	receive() (*adsResponse, error)
}

// malformedError reports a response that no server should send.
type malformedError struct{ error }

func nack(words string) *rpcstatus.Status {
	if words == "" {
		return nil
	}
	return &rpcstatus.Status{Code: int32(codes.Internal), Message: words}
}

// deltaStream is a stream of the delta variant.
type deltaStream struct {
	stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	node   *corev3.Node
	has    configuration
}

func openDelta(ctx context.Context, conn *grpc.ClientConn, node *corev3.Node, has configuration) (adsStream, error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	return &deltaStream{stream, node, has}, err
}

func (s *deltaStream) begin(typeURL string) error {
	request := &discoveryv3.DeltaDiscoveryRequest{Node: s.node, TypeUrl: typeURL, InitialResourceVersions: map[string]string{}}
	for name, r := range s.has[typeURL].resources {
		request.InitialResourceVersions[name] = r.version
	}
	if _, named := isNamed(typeURL); !named {
		request.ResourceNamesSubscribe = []string{"*"}
	} else if request.ResourceNamesSubscribe = s.has[typeURL].names(); len(request.ResourceNamesSubscribe) == 0 {
		return nil // An Envoy does not ask before it knows a name.
	}
	return s.stream.Send(request)
}

func (s *deltaStream) refer(typeURL string, added, gone []string) error {
	return s.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: added, ResourceNamesUnsubscribe: gone})
}

func (s *deltaStream) answer(r *adsResponse, refused string) error {
	return s.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.typeURL, ResponseNonce: r.nonce, ErrorDetail: nack(refused)})
}

func (s *deltaStream) receive() (*adsResponse, error) {
	m, err := s.stream.Recv()
	if err != nil {
		return nil, err
	}
	out := &adsResponse{typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), resources: map[string]*held{}, removed: m.GetRemovedResources()}
	for _, r := range m.GetResources() {
		name, kept, err := readResource(r.GetResource(), r.GetVersion())
		if err == nil && name != r.GetName() {
			err = fmt.Errorf("resource %s is called %s", name, r.GetName())
		}
		if err != nil {
			return nil, malformedError{err}
		}
		out.resources[name] = kept
	}
	return out, nil
}

// worldStream is a stream of the state of the world.
type worldStream struct {
	stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	node   *corev3.Node
	has    configuration
	nonces map[string]string
}

func openWorld(ctx context.Context, conn *grpc.ClientConn, node *corev3.Node, has configuration) (adsStream, error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	return &worldStream{stream, node, has, map[string]string{}}, err
}

func (s *worldStream) begin(typeURL string) error {
	if _, named := isNamed(typeURL); named && len(s.has[typeURL].wanted) == 0 {
		return nil
	}
	return s.request(typeURL, s.nonces[typeURL], "")
}

func (s *worldStream) refer(typeURL string, _, _ []string) error { return s.begin(typeURL) }

func (s *worldStream) answer(r *adsResponse, refused string) error {
	s.nonces[r.typeURL] = r.nonce
	return s.request(r.typeURL, r.nonce, refused)
}

func (s *worldStream) request(typeURL, nonce, refused string) error {
	return s.stream.Send(&discoveryv3.DiscoveryRequest{
		Node: s.node, TypeUrl: typeURL, VersionInfo: s.has[typeURL].version, ResponseNonce: nonce,
		ResourceNames: s.has[typeURL].names(), ErrorDetail: nack(refused),
	})
}

func (s *worldStream) receive() (*adsResponse, error) {
	m, err := s.stream.Recv()
	if err != nil {
		return nil, err
	}
	out := &adsResponse{typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), version: m.GetVersionInfo(), resources: map[string]*held{}}
	for _, from := range m.GetResources() {
		name, kept, err := readResource(from, "")
		if err != nil {
			return nil, malformedError{err}
		}
		out.resources[name] = kept
	}
	return out, nil
}
