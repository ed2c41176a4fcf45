package ads_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/discovery"
)

// Short names of the types, in the order in which they are sent.
const (
	cds = discovery.ClusterType
	eds = discovery.EndpointType
	lds = discovery.ListenerType
	rds = discovery.RouteType
)

// response is a response of either variant.
type response struct {
	typeURL, nonce, version string
	resources               map[string]*anypb.Any
	versions                map[string]string // of each resource, delta only
	removed                 []string
	taken                   time.Time // when an envoy processed it
}

func (r response) names() []string { return slices.Sorted(maps.Keys(r.resources)) }

func (r response) String() string {
	kind := r.typeURL[strings.LastIndexByte(r.typeURL, '.')+1:]
	text := fmt.Sprintf("%s%v", kind, r.names())
	if len(r.removed) > 0 {
		text += fmt.Sprintf(" without %v", r.removed)
	}
	return text
}

// variant is one of the protocol's two.
type variant string

const (
	world variant = "state of the world"
	delta variant = "delta"
)

// inBoth runs a case in both variants, each in a bubble.
func inBoth(t *testing.T, test func(t *testing.T, kind variant)) {
	for _, kind := range []variant{world, delta} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, kind) })
		})
	}
}

// client is a stream of the test's own. It does nothing by itself: the test sends
// each request, unchanged.
type client struct {
	t         testing.TB
	kind      variant
	node      *corev3.Node // sent with the next request
	conn      *grpc.ClientConn
	send      func(request) error
	closeSend func() error
	end       context.CancelFunc

	mu   sync.Mutex
	got  []response
	err  error
	over bool

	// What the protocol makes a client remember, by type.
	names   map[string]map[string]bool
	nonce   map[string]string
	version map[string]string

	slow chan struct{} // closed when a slow client begins to read; nil for others
}

// request is a request of either variant: names are all names, or those to
// subscribe to.
type request struct {
	typeURL, nonce, version string
	names, unsubscribe      []string
	initial                 map[string]string
	refused                 *statusv3.Status
}

// connect begins a stream.
func (s *server) connect(kind variant, node string) *client {
	return s.connectAs(kind, &corev3.Node{Id: node}, nil)
}

func (s *server) connectAs(kind variant, node *corev3.Node, slow chan struct{}) *client {
	s.t.Helper()
	c, ctx := s.newClient(kind, node, slow)
	stub := discoveryv3.NewAggregatedDiscoveryServiceClient(c.conn)
	if kind == delta {
		c.beginDelta(stub.DeltaAggregatedResources(ctx))
	} else {
		c.beginWorld(stub.StreamAggregatedResources(ctx))
	}
	return c
}

// connectSecrets begins a stream of secrets.
func (s *server) connectSecrets(kind variant, node *corev3.Node) *client {
	s.t.Helper()
	c, ctx := s.newClient(kind, node, nil)
	stub := secretv3.NewSecretDiscoveryServiceClient(c.conn)
	if kind == delta {
		c.beginDelta(stub.DeltaSecrets(ctx))
	} else {
		c.beginWorld(stub.StreamSecrets(ctx))
	}
	return c
}

func (s *server) newClient(kind variant, node *corev3.Node, slow chan struct{}) (*client, context.Context) {
	s.t.Helper()
	c := &client{slow: slow, t: s.t, kind: kind, node: node, conn: s.dial(),
		names: map[string]map[string]bool{}, nonce: map[string]string{}, version: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	c.end = sync.OnceFunc(func() { cancel(); c.conn.Close() })
	s.t.Cleanup(c.end)
	return c, ctx
}

func (c *client) beginWorld(stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse], err error) {
	if err != nil {
		c.t.Fatal(err)
	}
	c.closeSend = stream.CloseSend
	c.send = func(r request) error {
		return stream.Send(&discoveryv3.DiscoveryRequest{
			Node: c.node, TypeUrl: r.typeURL, ResponseNonce: r.nonce, VersionInfo: r.version, ResourceNames: r.names, ErrorDetail: r.refused,
		})
	}
	go c.read(func() (response, error) {
		m, err := stream.Recv()
		r := response{typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), version: m.GetVersionInfo(), resources: map[string]*anypb.Any{}}
		for _, a := range m.GetResources() {
			r.resources[nameOf(c.t, a)] = a
		}
		return r, err
	})
}

func (c *client) beginDelta(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse], err error) {
	if err != nil {
		c.t.Fatal(err)
	}
	c.closeSend = stream.CloseSend
	c.send = func(r request) error {
		return stream.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: c.node, TypeUrl: r.typeURL, ResponseNonce: r.nonce, ErrorDetail: r.refused,
			ResourceNamesSubscribe: r.names, ResourceNamesUnsubscribe: r.unsubscribe, InitialResourceVersions: r.initial,
		})
	}
	go c.read(func() (response, error) {
		m, err := stream.Recv()
		r := response{typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), version: m.GetSystemVersionInfo(), removed: m.GetRemovedResources(),
			resources: map[string]*anypb.Any{}, versions: map[string]string{}}
		for _, res := range m.GetResources() {
			if name := nameOf(c.t, res.GetResource()); name != res.GetName() {
				c.t.Errorf("resource %s is called %s", name, res.GetName())
			}
			r.resources[res.GetName()], r.versions[res.GetName()] = res.GetResource(), res.GetVersion()
		}
		return r, err
	})
}

func (c *client) read(receive func() (response, error)) {
	for {
		if c.slow != nil {
			<-c.slow
		}
		r, err := receive()
		c.mu.Lock()
		if err != nil {
			c.err, c.over = err, true
			c.mu.Unlock()
			return
		}
		c.got = append(c.got, r)
		c.mu.Unlock()
	}
}

// nameOf returns the name of a resource.
func nameOf(t testing.TB, a *anypb.Any) string {
	m, err := a.UnmarshalNew()
	if err != nil {
		t.Error(err)
		return ""
	}
	if l, ok := m.(interface{ GetClusterName() string }); ok {
		return l.GetClusterName()
	}
	return m.(interface{ GetName() string }).GetName()
}

// say sends a request unchanged. The node goes with the first one only.
func (c *client) say(r request) {
	c.t.Helper()
	if err := c.send(r); err != nil {
		c.t.Logf("send: %v", err)
	}
	c.node = nil
}

// subscribe subscribes to more of a type; without names to all, or to nothing more.
func (c *client) subscribe(typeURL string, names ...string) {
	c.t.Helper()
	if c.names[typeURL] == nil {
		c.names[typeURL] = map[string]bool{}
	}
	for _, n := range names {
		c.names[typeURL][n] = true
	}
	if c.kind == world {
		names = slices.Sorted(maps.Keys(c.names[typeURL]))
	}
	c.say(request{typeURL: typeURL, nonce: c.nonceOfWorld(typeURL), version: c.version[typeURL], names: names})
}

func (c *client) unsubscribe(typeURL string, names ...string) {
	c.t.Helper()
	for _, n := range names {
		delete(c.names[typeURL], n)
	}
	if c.kind == world {
		c.subscribe(typeURL)
		return
	}
	c.say(request{typeURL: typeURL, unsubscribe: names})
}

// nonceOfWorld returns the nonce for a request of the state of the world. A delta
// request that answers nothing has none.
func (c *client) nonceOfWorld(typeURL string) string {
	if c.kind == delta {
		return ""
	}
	return c.nonce[typeURL]
}

// ack accepts responses.
func (c *client) ack(all ...response) {
	c.t.Helper()
	for _, r := range all {
		c.nonce[r.typeURL], c.version[r.typeURL] = r.nonce, r.version
		c.answer(r, nil)
	}
}

// nack refuses a response with this text.
func (c *client) nack(r response, words string) {
	c.t.Helper()
	c.nonce[r.typeURL] = r.nonce
	c.answer(r, &statusv3.Status{Code: int32(codes.Internal), Message: words})
}

func (c *client) answer(r response, refused *statusv3.Status) {
	c.t.Helper()
	q := request{typeURL: r.typeURL, nonce: r.nonce, refused: refused}
	if c.kind == world {
		q.names, q.version = slices.Sorted(maps.Keys(c.names[r.typeURL])), c.version[r.typeURL]
	}
	c.say(q)
}

// told returns all responses since its last call, when everything is idle.
func (c *client) told() []response {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// one returns the only response.
func (c *client) one() response {
	c.t.Helper()
	got := c.told()
	if len(got) != 1 {
		c.t.Fatalf("told %v, want one response", got)
	}
	return got[0]
}

// nothing fails if there is a response.
func (c *client) nothing(when string) {
	c.t.Helper()
	if got := c.told(); len(got) > 0 {
		c.t.Fatalf("told %v %s", got, when)
	}
}

// ended returns the code with which the stream ended, or nothing if it goes on.
func (c *client) ended() codes.Code {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.t.Fatal("the stream goes on")
	}
	if errors.Is(c.err, io.EOF) {
		return codes.OK
	}
	return status.Code(c.err)
}

// decoded returns a resource as its message.
func decoded[M proto.Message](t testing.TB, a *anypb.Any) M {
	t.Helper()
	m, err := a.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m.(M)
}
