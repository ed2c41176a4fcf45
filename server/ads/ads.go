// Package ads is the gRPC front of discovery: AggregatedDiscoveryService, as state
// of the world and as delta. What is told and in what order is package discovery's
// business (discovery.Stream); here it is read from and written to the protocol.
//
//	Envoy ─▶ request.go ─▶ discovery.Stream.Receive
//	Envoy ◀─ codec.go   ◀─ discovery.Stream.Next
//
// connections.go bounds how many may be connected, identity.go says for whom a client
// certificate is.
package ads

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
)

// Options are what a Server is made of. Discovery is needed.
type Options struct {
	Discovery *discovery.Publisher
	// Log takes a line for each stream that ends with an error; nil drops them.
	Log *slog.Logger
	// Registry takes the metrics; nil drops them.
	Registry prometheus.Registerer
	// TLS ends connections, and says which clients are let in; nil for plain text.
	TLS *tls.Config
	// MaxStreams of one connection (128). An Envoy has one, a process with gRPC one for
	// each of its channels.
	MaxStreams uint32
	// MaxConnections bounds the connections at one time (32768). One more takes the
	// place of the one that has been without a proxy for longest, or is closed where
	// all have one.
	MaxConnections int
}

const (
	// maxRequest bounds a message of a client: 5,000 clusters with their versions
	// are 900 KB.
	maxRequest = 16 << 20
	// keepaliveTime is after how long of silence a client is asked whether it is
	// there, keepaliveTimeout how long it has to answer: a machine that went away
	// leaves within a minute.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// helloTimeout is how long a client has to say who it is.
	helloTimeout = 30 * time.Second
	// stopTimeout is how long clients have to take note of the end.
	stopTimeout = 3 * time.Second
	// Buffers of a connection. What comes is little and seldom, and the one large message
	// at the start is read past it. That for writing is only there while something is
	// written (grpc shares them): route tables are large.
	readBuffer  = 1 << 10
	writeBuffer = 32 << 10
)

// Server answers streams. Make it with New.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	opts    Options
	metrics *metrics
	grpc    *grpc.Server
	// stopping ends the streams.
	stopping context.Context
	stop     context.CancelFunc
}

// New builds a server. It starts nothing.
func New(opts Options) *Server {
	opts.MaxStreams = cmp.Or(opts.MaxStreams, 128)
	opts.MaxConnections = cmp.Or(opts.MaxConnections, 32768)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, metrics: newMetrics(opts.Registry)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(transport(opts.TLS)),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(opts.MaxStreams),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	return s
}

// Serve answers on a listener, which it closes, until ctx ends; then it ends the
// streams, whose proxies go to another replica. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stopped := context.AfterFunc(ctx, func() {
		s.stop()
		// Who does not read does not hear that it is over.
		defer time.AfterFunc(stopTimeout, s.grpc.Stop).Stop()
		s.grpc.GracefulStop()
	})
	err := s.grpc.Serve(listen(l, s.opts))
	if !stopped() {
		s.grpc.Stop()
		return ctx.Err()
	}
	return err
}

// StreamAggregatedResources is the state-of-the-world variant.
func (s *Server) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.run(stream, discovery.StateOfTheWorld, func() (message, error) {
		r, err := stream.Recv()
		return message{r.GetNode(), worldRequest(r)}, err
	})
}

// DeltaAggregatedResources is the delta variant.
func (s *Server) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.run(stream, discovery.Delta, func() (message, error) {
		r, err := stream.Recv()
		return message{r.GetNode(), deltaRequest(r)}, err
	})
}

// run serves one stream until the client ends it, the server stops, or what the
// client says makes no sense.
func (s *Server) run(stream grpc.ServerStream, variant discovery.Variant, receive func() (message, error)) error {
	first, err := s.hello(stream.Context(), receive)
	if err != nil {
		return err
	}
	node, err := first.identity()
	if err != nil {
		return s.refuse(err)
	}
	if err := s.admit(stream.Context(), node); err != nil {
		return s.refuse(err)
	}
	d, err := s.connect(first, node, variant)
	if err != nil {
		return s.refuse(err)
	}
	defer d.Close()
	defer serving(stream.Context())()
	s.opts.Discovery.Introduce(node, first.agent(stream.Context()))

	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	defer context.AfterFunc(s.stopping, func() { end(errStopping) })()
	m := s.metrics.of(d.Transport())
	go func() { end(follow(d, m, first.request, receive)) }()
	err = send(ctx, d, m, stream)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	s.opts.Log.Debug("stream ended", "node", node.ID, "why", err)
	return s.refuse(err)
}

func (s *Server) connect(first message, node discovery.Node, variant discovery.Variant) (*discovery.Stream, error) {
	switch {
	case !first.proxyless():
		return s.opts.Discovery.Connect(node, variant)
	case variant == discovery.Delta:
		return nil, fmt.Errorf("%w: gRPC without a proxy is told the state of the world, not delta", discovery.ErrBadNode)
	}
	return s.opts.Discovery.ConnectProxyless(node)
}

// hello waits for the first message, and not for ever.
func (s *Server) hello(ctx context.Context, receive func() (message, error)) (message, error) {
	type received struct {
		message
		err error
	}
	came := make(chan received, 1)
	go func() {
		m, err := receive()
		came <- received{m, err}
	}()
	patience := time.NewTimer(helloTimeout)
	defer patience.Stop()
	select {
	case r := <-came:
		return r.message, r.err
	case <-patience.C:
		return message{}, status.Errorf(codes.DeadlineExceeded, "no request came within %v", helloTimeout)
	case <-s.stopping.Done():
		return message{}, errStopping
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

var errStopping = status.Error(codes.Unavailable, "this server stops: ask another one")

// follow takes what the client says until it ends.
func follow(d *discovery.Stream, m streamMetrics, first discovery.Request, receive func() (message, error)) error {
	for r := first; ; {
		m.received(r)
		if err := d.Receive(r); err != nil {
			return err
		}
		next, err := receive()
		if err != nil {
			return err
		}
		r = next.request
	}
}

// send writes what the client is due. A slow client makes it wait: what is sent
// next is then the newest.
func send(ctx context.Context, d *discovery.Stream, m streamMetrics, stream grpc.ServerStream) error {
	for {
		r, err := d.Next(ctx)
		if err != nil {
			return err
		}
		text := encode(r)
		if err := stream.SendMsg(text); err != nil {
			return err
		}
		m.sent(r.TypeURL, len(text[0])+len(text[1]))
	}
}

// refuse is an error as the protocol has it.
func (s *Server) refuse(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, discovery.ErrBadNode):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, discovery.ErrTooMany):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, discovery.ErrNotReady), errors.Is(err, discovery.ErrGone):
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}
