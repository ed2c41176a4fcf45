// Package ads is the gRPC server of discovery: AggregatedDiscoveryService and
// SecretDiscoveryService, as state of the world and as delta. Package discovery decides what to send and in what order
// (discovery.Stream). This package reads and writes the protocol.
//
//	Envoy ─▶ frames.go ─▶ intake.go ─▶ request.go ─▶ discovery.Stream.Receive
//	Envoy ◀─ codec.go  ◀─ answers.go ◀────────────── discovery.Stream.Next
//
// connections.go bounds the connections, memory.go bounds the memory that they may
// use, identity.go reads the identity in a client certificate, and secrets.go serves secrets
// apart from everything else.
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
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// Options configure a Server. Discovery is required.
type Options struct {
	Discovery *discovery.Publisher
	// Log receives a line for each stream that ends with an error; nil drops them.
	Log *slog.Logger
	// Registry collects the metrics; nil drops them.
	Registry prometheus.Registerer
	// Proxies verifies the proxies of streams, except on private listeners. Nil trusts the
	// statements of nodes, unless a client certificate contradicts them.
	Proxies *proxyauth.Prover
	// Secrets has the secrets of workloads that are in no configuration; nil for none.
	Secrets WorkloadSecrets
	// Certificates returns an error unless the client certificate of an open connection counts
	// now. nil means that it counts as long as its connection.
	Certificates func(*tls.ConnectionState) error
	// Services add other services to the gRPC server. Their requests may have 64 KiB.
	Services []func(grpc.ServiceRegistrar)
	// TLS secures connections and decides which clients are accepted; nil means plain
	// text.
	TLS *tls.Config
	// MaxStreams bounds the streams of one connection (default 128). An Envoy uses one
	// stream, and a gRPC process one for each of its channels.
	MaxStreams uint32
	// MaxConnections bounds the connections at one time (default 32768). One more replaces
	// the connection that has been without a proxy for the longest time. If all have a
	// proxy, the new one is closed.
	MaxConnections int
	// Memory bounds, in bytes, the memory that all clients together use (default 128 MiB):
	// requests that are being received, and subscriptions of streams. Above it, the server
	// ends the connection that uses the most. Unread responses may take the same amount
	// again.
	Memory int64
}

const (
	// maxRequest bounds a message of a client: 5,000 clusters with their versions are
	// 900 KB.
	maxRequest    = 4 << 20
	defaultMemory = 128 << 20
	// maxHeaders bounds the headers of a stream, which are kept as long as the stream.
	maxHeaders = 16 << 10
	// keepaliveTime is the silence after which the server pings a client,
	// keepaliveTimeout the time that the client has to answer: a machine that
	// disappeared is dropped within a minute.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// helloTimeout is how long a client may take to send its first message.
	helloTimeout = 30 * time.Second
	// stopTimeout is how long clients have to notice the end.
	stopTimeout = 3 * time.Second
	// Buffers of a connection. Clients send little and seldom, and the one large
	// message at the start bypasses the buffer. The write buffer exists only during a
	// write (grpc shares them): route tables are large.
	readBuffer  = 1 << 10
	writeBuffer = 32 << 10
)

// Server answers streams. Make it with New.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	opts    Options
	metrics *metrics
	memory  *memory
	answers *answers
	intake  *intake
	grpc    *grpc.Server
	// stopping ends the streams.
	stopping context.Context
	stop     context.CancelFunc
}

// New returns a server. It starts nothing.
func New(opts Options) *Server {
	opts.MaxStreams = cmp.Or(opts.MaxStreams, 128)
	opts.MaxConnections = cmp.Or(opts.MaxConnections, 32768)
	opts.Memory = cmp.Or(opts.Memory, defaultMemory)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, metrics: newMetrics(opts.Registry), memory: newMemory(opts), answers: newAnswers(opts), intake: newIntake(opts)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(counting{transport(opts.TLS)}),
		grpc.ForceServerCodecV2(codec{}),
		grpc.StatsHandler(compressions{}),
		grpc.UnaryInterceptor(s.answerOther),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(opts.MaxStreams),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	secretv3.RegisterSecretDiscoveryServiceServer(s.grpc, &secretService{server: s})
	for _, add := range opts.Services {
		add(s.grpc)
	}
	return s
}

// Serve answers on a listener and on private ones until ctx ends. Then it ends the streams,
// so that their proxies connect to another replica, and closes the listeners. A private
// listener uses plain text, and only processes that may have private keys can connect to
// it. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener, private ...net.Listener) error {
	stopped := context.AfterFunc(ctx, func() {
		s.stop()
		// A client that does not read does not notice the end.
		defer time.AfterFunc(stopTimeout, s.grpc.Stop).Stop()
		s.grpc.GracefulStop()
	})
	all := s.newConnections()
	failed := make(chan error, 1+len(private))
	go func() { failed <- s.grpc.Serve(&listener{l, all, false}) }()
	for _, p := range private {
		go func() { failed <- s.grpc.Serve(&listener{p, all, true}) }()
	}
	err := <-failed
	if !stopped() {
		s.grpc.Stop()
		return ctx.Err()
	}
	return err
}

// StreamAggregatedResources is the state-of-the-world variant.
func (s *Server) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.run(stream, discovery.StateOfTheWorld, decodeWorld, false)
}

// DeltaAggregatedResources is the delta variant.
func (s *Server) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.run(stream, discovery.Delta, decodeDelta, false)
}

// run serves one stream until the client ends it, the server stops, the connection
// holds too much, or a request is invalid.
func (s *Server) run(stream grpc.ServerStream, variant discovery.Variant, decode decoded, onlySecrets bool) error {
	if name := compressionOf(stream.Context()); name != "" {
		return status.Errorf(codes.Unimplemented, "requests are compressed as %s: send them as they are", name)
	}
	on := connectionOf(stream.Context())
	if on == nil {
		return status.Error(codes.Internal, "the stream is on no connection of this server")
	}
	if on.private {
		if err := refuseProxied(stream.Context()); err != nil {
			return err
		}
	}
	held, err := on.memory.stream()
	if err != nil {
		return err
	}
	defer held.close()
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	defer context.AfterFunc(s.stopping, func() { end(errStopping) })()
	defer context.AfterFunc(held.over, func() { end(reason(held.over)) })()
	c := &conversation{server: s, stream: stream, decode: decode, onlySecrets: onlySecrets, held: held, pace: rate.NewLimiter(requestRate, requestBurst)}
	if err = c.hold(ctx, variant, on, end); errors.Is(err, context.Canceled) {
		err = reason(ctx)
	}
	return s.refuse(err)
}

// conversation is one stream, in both directions.
type conversation struct {
	server *Server
	stream grpc.ServerStream
	decode decoded
	// onlySecrets: the stream is one of the SecretDiscoveryService.
	onlySecrets bool
	held        *holding
	pace        *rate.Limiter // of the client's requests
	d           *discovery.Stream
	m           streamMetrics
}

// hold serves the stream until ctx ends; end ends it.
func (c *conversation) hold(ctx context.Context, variant discovery.Variant, on *connection, end context.CancelCauseFunc) error {
	first, err := c.hello(ctx)
	if err != nil {
		return err
	}
	who, s := first.who, c.server
	if who.bad != nil {
		return who.bad
	}
	if err := s.admit(ctx, who.node, false); err != nil {
		return err
	}
	closed, err := s.countStream(ctx, who.node, c.onlySecrets)
	if err != nil {
		return err
	}
	defer closed()
	if c.d, err = c.connect(who, variant); err != nil {
		return err
	}
	defer func() { c.close(ctx, on) }()
	c.d.SendKeys(s.keyScope(ctx))
	s.addSecrets(ctx, c.d)
	defer s.whileProved(ctx, who.node, end)()
	defer on.serving()()
	if !c.onlySecrets {
		s.opts.Discovery.Introduce(who.node, who.agent)
	}
	c.m = s.metrics.of(c.d.Transport())
	go func() { end(c.follow(first)) }()
	err = c.send(ctx)
	s.opts.Log.Debug("stream ended", "node", who.node.ID, "why", err)
	return err
}

// close ends the stream of a proxy. A proxy that did not end it may run, and comes back
// unless it is cut off.
func (c *conversation) close(ctx context.Context, on *connection) {
	resets := c.stream.Context().Err() != nil && !on.isClosed()
	if errors.Is(context.Cause(ctx), io.EOF) || resets || on.peerClosed.Load() {
		c.d.Close()
		return
	}
	c.d.Lose()
}

func (c *conversation) connect(who *who, variant discovery.Variant) (*discovery.Stream, error) {
	s := c.server
	switch {
	case c.onlySecrets:
		return s.connectSecrets(who, variant)
	case who.asksForHosts && variant == discovery.Delta:
		return s.opts.Discovery.ConnectOnDemand(who.node)
	case !who.proxyless:
		return s.opts.Discovery.Connect(who.node, variant)
	case variant == discovery.Delta:
		return nil, fmt.Errorf("%w: gRPC without a proxy is told the state of the world, not delta", discovery.ErrBadNode)
	}
	return s.opts.Discovery.ConnectProxyless(who.node)
}

// hello waits for the first message, at most for helloTimeout.
func (c *conversation) hello(ctx context.Context) (message, error) {
	type received struct {
		message
		err error
	}
	came := make(chan received, 1)
	go func() {
		m, err := c.receive(true)
		came <- received{m, err}
	}()
	patience := time.NewTimer(helloTimeout)
	defer patience.Stop()
	select {
	case r := <-came:
		return r.message, r.err
	case <-patience.C:
		return message{}, status.Errorf(codes.DeadlineExceeded, "no request came within %v", helloTimeout)
	case <-ctx.Done():
		return message{}, context.Canceled
	}
}

var errStopping = status.Error(codes.Unavailable, "this server stops: ask another one")

// follow handles the client's messages, of which m is the first, until they end.
func (c *conversation) follow(m message) error {
	for {
		c.m.received(m.request)
		err := c.d.Receive(m.request)
		c.held.measure(c.d.Held)
		c.held.take(m.size)
		if err != nil {
			return err
		}
		if m, err = c.receive(false); err != nil {
			return err
		}
	}
}

// send writes the pending responses. It waits for a slow client, and then sends the
// newest.
func (c *conversation) send(ctx context.Context) error {
	for {
		r, err := c.d.Next(ctx)
		if err != nil {
			return err
		}
		c.held.measure(c.d.Held)
		text, err := c.server.answers.encode(ctx, c.held.connMemory, r)
		if err != nil {
			return err
		}
		length := text.len()
		if err := c.stream.SendMsg(text); err != nil {
			text.release()
			return err
		}
		c.m.sent(r.TypeURL, length)
	}
}

// refuse converts an error to a gRPC status.
func (s *Server) refuse(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, discovery.ErrBadNode):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, discovery.ErrTooMany):
		s.intake.refused.Inc()
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, discovery.ErrOverBudget):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, discovery.ErrNotReady), errors.Is(err, discovery.ErrGone), errors.Is(err, discovery.ErrUnanswered):
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}
