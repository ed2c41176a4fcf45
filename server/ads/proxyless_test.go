package ads_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	bootstrap "github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/ads"
)

// mesh is a server, backends, and gRPC clients that call them without a proxy.
type mesh struct {
	*testing.T
	source    *source
	publisher *discovery.Publisher
	address   string
	resolver  resolver.Builder
}

// newMesh starts a mesh with the objects.
func newMesh(t *testing.T, objects ...*schema.Object) *mesh {
	t.Helper()
	w := &mesh{T: t, source: newSource(objects...)}
	w.publisher, w.address, _ = w.replica("127.0.0.1:0")
	w.resolver = w.client("sidecar~10.9.0.1~a.default~default.svc.cluster.local", nil)
	return w
}

// replica serves at an address until stop.
func (w *mesh) replica(address string) (_ *discovery.Publisher, at string, stop func()) {
	w.Helper()
	l := w.listen(address)
	publisher, stop := w.serve(l)
	return publisher, l.Addr().String(), stop
}

func (w *mesh) listen(address string) net.Listener {
	w.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// serve serves on a listener and on private ones until stop.
func (w *mesh) serve(l net.Listener, private ...net.Listener) (_ *discovery.Publisher, stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	publisher := discovery.New(discovery.Options{Source: w.source, HoldOff: time.Millisecond})
	var all sync.WaitGroup
	all.Go(func() {
		if err := publisher.Run(ctx); !errors.Is(err, context.Canceled) {
			w.Errorf("Run: %v", err)
		}
	})
	all.Go(func() {
		if err := ads.New(ads.Options{Discovery: publisher}).Serve(ctx, l, private...); !errors.Is(err, context.Canceled) {
			w.Errorf("Serve: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	w.Cleanup(stop)
	return publisher, stop
}

// client is a program of its own, started with the output of istioctl bootstrap.
func (w *mesh) client(node string, labels map[string]string) resolver.Builder {
	w.Helper()
	o := bootstrap.DefaultBootstrap()
	o.API, o.NodeID, o.Labels, o.Server, o.XDS = bootstrap.GRPC, node, labels, "http://127.0.0.1", []string{w.address}
	config, err := bootstrap.Bootstrap(o)
	if err != nil {
		w.Fatal(err)
	}
	b, err := xds.NewXDSResolverWithConfigForTesting(config)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func (w *mesh) dial(target string) *grpc.ClientConn { return w.dialFrom(w.resolver, target) }

func (w *mesh) dialFrom(from resolver.Builder, target string) *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient("xds:///"+target, grpc.WithResolvers(from), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return conn
}

// backend is a server that answers every call with its name.
type backend struct {
	name, host string
	port       int
	stop       func()
	hang       atomic.Bool // until the caller gives up
}

// backend listens at its own loopback address.
func (w *mesh) backend(name string) *backend {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr)
	b := &backend{name: name, host: at.IP.String(), port: at.Port}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		if b.hang.Load() {
			<-stream.Context().Done()
			return stream.Context().Err()
		}
		return stream.SendMsg(wrapperspb.String(name))
	}))
	go func() { _ = s.Serve(l) }()
	b.stop = s.Stop
	w.Cleanup(s.Stop)
	return b
}

// endpoint returns the backend's entry in a ServiceEntry.
func (b *backend) endpoint(more string) string {
	return fmt.Sprintf(`{"address":%q,"ports":{"grpc":%d},"labels":{"version":%q}%s}`, b.host, b.port, b.name, more)
}

// shop returns a gRPC service with endpoints.
func shop(endpoints ...string) *schema.Object { return grpcService("reviews", endpoints...) }

func grpcService(name string, endpoints ...string) *schema.Object {
	return object("ServiceEntry", name, fmt.Sprintf(
		`{"hosts":["%s.default.svc.cluster.local"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
			`"ports":[{"number":9080,"name":"grpc","protocol":"GRPC"}],"endpoints":[%s]}`, name, strings.Join(endpoints, ",")))
}

// versions returns subsets with the names of the versions, with more settings.
func versions(more string, names ...string) *schema.Object {
	var subsets []string
	for _, n := range names {
		subsets = append(subsets, fmt.Sprintf(`{"name":%q,"labels":{"version":%q}}`, n, n))
	}
	return object("DestinationRule", "reviews", fmt.Sprintf(
		`{"host":"reviews.default.svc.cluster.local","subsets":[%s]%s}`, strings.Join(subsets, ","), more))
}

// routes returns a VirtualService with these HTTP rules.
func routes(http string) *schema.Object {
	return object("VirtualService", "reviews", fmt.Sprintf(`{"hosts":["reviews.default.svc.cluster.local"],"http":[%s]}`, http))
}

// to returns a destination of a version.
func to(version string) string {
	return fmt.Sprintf(`{"destination":{"host":"reviews.default.svc.cluster.local","subset":%q}}`, version)
}

const target = "reviews:9080"

// call returns the name of the backend that answers, or the code of the failure.
func call(conn *grpc.ClientConn, headers ...string) string {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), headers...), time.Minute)
	defer cancel()
	var name wrapperspb.StringValue
	if err := conn.Invoke(ctx, "/shop.Reviews/Get", &emptypb.Empty{}, &name); err != nil {
		return status.Code(err).String()
	}
	return name.GetValue()
}

// until calls until the wanted backend answers. It waits as long as the whole test
// may: no outcome depends on the time.
func until(t testing.TB, conn *grpc.ClientConn, want string, headers ...string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		got := call(conn, headers...)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// always checks that every one of some calls ends in one of the ways.
func always(t testing.TB, conn *grpc.ClientConn, headers []string, want ...string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for range 40 {
		got[call(conn, headers...)]++
	}
	for name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("got %v, want nothing but %v", got, want)
		}
	}
	return got
}

func TestProxylessNames(t *testing.T) {
	outside.Slow(t)
	w := newMesh(t)
	v1 := w.backend("v1")
	w.source.put(shop(v1.endpoint("")))
	for _, name := range []string{
		"reviews:9080", "reviews.default:9080", "reviews.default.svc:9080", "reviews.default.svc.cluster.local:9080",
	} {
		until(t, w.dial(name), "v1")
	}
	// A client waits 15 s for what it does not receive, all of these together.
	var unknown sync.WaitGroup
	for _, name := range []string{"reviews", "reviews:80", "ratings:9080"} {
		conn := w.dial(name)
		unknown.Go(func() { always(t, conn, nil, codes.Unavailable.String()) })
	}
	other := w.dialFrom(w.client("sidecar~10.9.0.4~d.other~other.svc.cluster.local", nil), "reviews:9080")
	unknown.Go(func() { always(t, other, nil, codes.Unavailable.String()) })
	unknown.Wait()
	until(t, w.dialFrom(w.client("sidecar~10.9.0.4~d.other~other.svc.cluster.local", nil), "reviews.default:9080"), "v1")
}

func TestProxylessWeights(t *testing.T) {
	w := newMesh(t)
	v1, v2, v3 := w.backend("v1"), w.backend("v2"), w.backend("v3")
	w.source.put(shop(v1.endpoint(""), v2.endpoint(""), v3.endpoint("")), versions("", "v1", "v2", "v3"),
		routes(`{"route":[`+strings.TrimSuffix(to("v1"), "}")+`,"weight":75},`+strings.TrimSuffix(to("v2"), "}")+`,"weight":25}]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	got := map[string]int{}
	const calls = 2000
	for range calls {
		got[call(conn)]++
	}
	// Four standard deviations are 77.
	if got["v1"]+got["v2"] != calls || got["v1"] < 1400 || got["v1"] > 1600 {
		t.Errorf("got %v, want three of four by v1 and the others by v2", got)
	}
}

func TestProxylessEndpointWeights(t *testing.T) {
	w := newMesh(t)
	v1, v2 := w.backend("v1"), w.backend("v2")
	w.source.put(shop(v1.endpoint(`,"weight":3`), v2.endpoint(`,"weight":1`)))
	conn := w.dial(target)
	until(t, conn, "v1")
	until(t, conn, "v2")
	got := map[string]int{}
	for range 2000 {
		got[call(conn)]++
	}
	if got["v1"]+got["v2"] != 2000 || got["v1"] < 1400 || got["v1"] > 1600 {
		t.Errorf("got %v, want three of four by v1 and the others by v2", got)
	}
}

func TestProxylessHeaders(t *testing.T) {
	w := newMesh(t)
	v1, v2, v3 := w.backend("v1"), w.backend("v2"), w.backend("v3")
	w.source.put(shop(v1.endpoint(""), v2.endpoint(""), v3.endpoint("")), versions("", "v1", "v2", "v3"), routes(
		`{"match":[{"headers":{"user":{"exact":"jason"}}},{"headers":{"user":{"regex":"test-[0-9]+"}}}],"route":[`+to("v2")+`]},`+
			`{"match":[{"withoutHeaders":{"tier":{"exact":"gold"}},"headers":{"region":{"prefix":"eu"}}}],"route":[`+to("v3")+`]},`+
			`{"match":[{"method":{"exact":"GET"}},{"queryParams":{"q":{"exact":"x"}}}],"route":[`+to("v2")+`]},`+
			`{"match":[{"uri":{"prefix":"/shop.Reviews/"}}],"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	for _, tc := range []struct {
		want    string
		headers []string
	}{
		{"v2", []string{"user", "jason"}},
		{"v2", []string{"user", "test-42"}},
		{"v1", []string{"user", "my-test-42"}},
		{"v3", []string{"region", "eu-1"}},
		{"v3", []string{"region", "eu-1", "tier", "silver"}},
		{"v1", []string{"region", "eu-1", "tier", "gold"}},
	} {
		always(t, conn, tc.headers, tc.want)
	}
}

// TestProxylessClosed checks that what gRPC cannot match or do is not done in
// another way.
func TestProxylessClosed(t *testing.T) {
	// first shows that the rules have arrived.
	first := `{"match":[{"headers":{"ready":{"exact":"1"}}}],"route":[` + to("v1") + `]},`
	last := `,{"route":[` + to("v1") + `]}`
	for _, tc := range []struct {
		name, rule, why string
		want            []string
	}{
		{"authority", `{"match":[{"authority":{"exact":"reviews:9080"}}],"route":[` + to("v2") + `]}`, ":authority", nil},
		{"user agent", `{"match":[{"headers":{"user-agent":{"prefix":"grpc-go"}}}],"fault":{"abort":{"httpStatus":403,"percentage":{"value":100}}},"route":[` + to("v1") + `]}`, "user-agent", nil},
		{"rewrite", `{"rewrite":{"uri":"/v2/"},"route":[` + to("v2") + `]}`, "rewrites nothing", nil},
		{"headers", `{"headers":{"request":{"set":{"tenant":"a"}}},"route":[` + to("v2") + `]}`, "changes no headers", nil},
		{"answer", `{"match":[{"headers":{"bad":{"exact":"1"}}}],"directResponse":{"status":403}}`, "403", []string{"bad", "1"}},
		{"redirect", `{"redirect":{"uri":"/"}}`, "redirects", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newMesh(t)
			v1, v2 := w.backend("v1"), w.backend("v2")
			w.source.put(shop(v1.endpoint(""), v2.endpoint("")), versions("", "v1", "v2"), routes(first+tc.rule+last))
			conn := w.dial(target)
			until(t, conn, "v1", "ready", "1")
			always(t, conn, tc.want, codes.Unavailable.String())
			if tc.want != nil {
				always(t, conn, nil, "v1")
			}
			w.untilProblem("VirtualService", tc.why)
		})
	}
}

// untilProblem waits for a problem of an object of a kind with a text.
func (w *mesh) untilProblem(kind, text string) {
	w.Helper()
	var all diag.List
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all = w.publisher.Report().Problems
		if slices.ContainsFunc(all, func(p diag.Problem) bool { return p.Object.Kind == kind && strings.Contains(p.Message, text) }) {
			return
		}
	}
	w.Fatalf("problems are\n%v\nwant one of a %s with %q", all, kind, text)
}

// TestProxylessTLS checks that a client that does not support TLS does not use
// plain text instead.
func TestProxylessTLS(t *testing.T) {
	outside.Slow(t)
	w := newMesh(t)
	v1 := w.backend("v1")
	w.source.put(shop(v1.endpoint("")), versions("", "v1"))
	conn := w.dial(target)
	until(t, conn, "v1")
	w.source.put(versions(`,"trafficPolicy":{"tls":{"mode":"SIMPLE"}}`, "v1"))
	until(t, conn, codes.Unavailable.String())
	always(t, conn, nil, codes.Unavailable.String())
	w.untilProblem("DestinationRule", "gRPC without a proxy")
}

func TestProxylessFailover(t *testing.T) {
	w := newMesh(t)
	near, far := w.backend("near"), w.backend("far")
	w.source.put(shop(near.endpoint(`,"locality":"r1/z1"`), far.endpoint(`,"locality":"r2/z2"`)), versions(
		`,"trafficPolicy":{"outlierDetection":{"interval":"1s"},"loadBalancer":{"localityLbSetting":{"distribute":[],"failover":[{"from":"r1","to":"r2"}]}}}`))
	conn := w.dialFrom(w.at("r1", "z1"), target)
	until(t, conn, "near")
	always(t, conn, nil, "near")
	near.stop()
	until(t, conn, "far")
	always(t, conn, nil, "far")
	w.source.put(shop(far.endpoint(`,"locality":"r2/z2"`)))
	always(t, conn, nil, "far")
}

// at returns a client that states its locality.
func (w *mesh) at(region, zone string) resolver.Builder {
	w.Helper()
	b, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil,
		`{"xds_servers":[{"server_uri":%q,"channel_creds":[{"type":"insecure"}]}],`+
			`"node":{"id":"sidecar~10.9.0.3~c.default~default.svc.cluster.local","locality":{"region":%q,"zone":%q}}}`, w.address, region, zone))
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// TestProxylessUpdates changes rules and endpoints during calls, none of which
// fails.
func TestProxylessUpdates(t *testing.T) {
	w := newMesh(t)
	v1, v2 := w.backend("v1"), w.backend("v2")
	share := func(one, two int) *schema.Object {
		return routes(fmt.Sprintf(`{"match":[{"headers":{"first":{"exact":"%d"}}}],"route":[%s]},{"route":[%s,"weight":%d},%s,"weight":%d}]}`,
			one, to("v1"), strings.TrimSuffix(to("v1"), "}"), one, strings.TrimSuffix(to("v2"), "}"), two))
	}
	w.source.put(shop(v1.endpoint(""), v2.endpoint("")), versions("", "v1", "v2"), share(90, 10))
	conn := w.dial(target)
	until(t, conn, "v1")
	until(t, conn, "v2")

	ended := w.calls(conn, []string{"v1", "v2", "v3"})
	for range 5 {
		w.source.put(share(10, 90))
		until(t, conn, "v1", "first", "10")
		w.source.put(share(90, 10))
		until(t, conn, "v1", "first", "90")
	}
	third := w.backend("v3")
	// The labels are of v2, so it joins that subset.
	joins := fmt.Sprintf(`{"address":%q,"ports":{"grpc":%d},"labels":{"version":"v2"}}`, third.host, third.port)
	w.source.put(shop(v1.endpoint(""), v2.endpoint(""), joins))
	until(t, conn, "v3")
	w.source.put(shop(v1.endpoint(""), joins))
	for seen := true; seen; {
		seen = always(t, conn, nil, "v1", "v2", "v3")["v2"] > 0
	}
	ended()
}

// TestProxylessNewClusters checks that a rule with another destination makes the
// client subscribe to its clusters.
func TestProxylessNewClusters(t *testing.T) {
	w := newMesh(t)
	v1, v2 := w.backend("v1"), w.backend("v2")
	w.source.put(shop(v1.endpoint(""), v2.endpoint("")), versions("", "v1", "v2"), routes(`{"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	for range 5 {
		w.source.put(routes(`{"route":[` + to("v2") + `]}`))
		until(t, conn, "v2")
		always(t, conn, nil, "v2")
		w.source.put(routes(`{"route":[` + to("v1") + `]}`))
		until(t, conn, "v1")
		always(t, conn, nil, "v1")
	}
	w.source.remove(routes(""))
	until(t, conn, "v2")
	until(t, conn, "v1")
}

// TestProxylessFlips redirects all calls to clusters that had no calls before,
// during calls, none of which fails.
func TestProxylessFlips(t *testing.T) {
	w := newMesh(t)
	names := []string{"v1", "v2", "v3"}
	var endpoints []string
	for _, name := range names {
		endpoints = append(endpoints, w.backend(name).endpoint(""))
	}
	w.source.put(shop(endpoints...), versions("", names...), routes(`{"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")

	stop := make(chan struct{})
	var calls sync.WaitGroup
	defer calls.Wait()
	defer close(stop)
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := call(conn); !slices.Contains(names, got) {
					t.Errorf("a call failed: %s", got)
					return
				}
			}
		})
	}
	for i := range 20 {
		next := names[(i+1)%len(names)]
		w.source.put(routes(`{"route":[` + to(next) + `]}`))
		until(t, conn, next)
	}
}

func TestProxylessFaults(t *testing.T) {
	w := newMesh(t)
	v1 := w.backend("v1")
	w.source.put(shop(v1.endpoint("")), versions("", "v1"), routes(
		`{"match":[{"headers":{"bad":{"exact":"1"}}}],"fault":{"abort":{"httpStatus":403,"percentage":{"value":100}}},"route":[`+to("v1")+`]},`+
			`{"match":[{"headers":{"bad":{"exact":"2"}}}],"fault":{"abort":{"grpcStatus":"RESOURCE_EXHAUSTED","percentage":{"value":100}}},"route":[`+to("v1")+`]},`+
			`{"match":[{"headers":{"slow":{"exact":"1"}}}],"timeout":"0.2s","route":[`+to("v1")+`]},`+
			`{"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	always(t, conn, []string{"bad", "1"}, codes.PermissionDenied.String())
	always(t, conn, []string{"bad", "2"}, codes.ResourceExhausted.String())
	v1.hang.Store(true)
	if got := call(conn, "slow", "1"); got != codes.DeadlineExceeded.String() {
		t.Errorf("got %s of a call with a time-out", got)
	}
	v1.hang.Store(false)
	always(t, conn, nil, "v1")
}

// TestProxylessRestart checks that a client keeps working without a server, and
// receives changes from the next one.
func TestProxylessRestart(t *testing.T) {
	outside.Slow(t)
	w := &mesh{T: t, source: newSource()}
	var stop func()
	w.publisher, w.address, stop = w.replica("127.0.0.1:0")
	w.resolver = w.client("sidecar~10.9.0.1~a.default~default.svc.cluster.local", nil)
	v1, v2 := w.backend("v1"), w.backend("v2")
	w.source.put(shop(v1.endpoint(""), v2.endpoint("")), versions("", "v1", "v2"), routes(`{"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	stop()
	always(t, conn, nil, "v1")
	w.source.put(routes(`{"route":[` + to("v2") + `]}`))
	always(t, conn, nil, "v1")
	w.replica(w.address)
	until(t, conn, "v2")
}

// TestProxylessRestartWithChanges restarts the server again and again during calls, each time
// after a rule was changed to clusters that had no calls before. No call fails.
func TestProxylessRestartWithChanges(t *testing.T) {
	outside.Slow(t)
	w := &mesh{T: t, source: newSource()}
	var stop func()
	w.publisher, w.address, stop = w.replica("127.0.0.1:0")
	w.resolver = w.client("sidecar~10.9.0.1~a.default~default.svc.cluster.local", nil)
	names := []string{"v1", "v2", "v3"}
	var endpoints []string
	for _, name := range names {
		endpoints = append(endpoints, w.backend(name).endpoint(""))
	}
	w.source.put(shop(endpoints...), versions("", names...), routes(`{"route":[`+to("v1")+`]}`))
	conn := w.dial(target)
	until(t, conn, "v1")
	ended := w.calls(conn, names)
	for i := range 6 {
		next := names[(i+1)%len(names)]
		stop()
		w.source.put(routes(`{"route":[` + to(next) + `]}`))
		_, _, stop = w.replica(w.address)
		until(t, conn, next)
	}
	ended()
}

// calls makes calls until the caller ends them. Each is answered by one of the backends.
func (w *mesh) calls(conn *grpc.ClientConn, names []string) (end func()) {
	w.Helper()
	stop := make(chan struct{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := callErr(conn, names); err != nil {
					w.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	end = sync.OnceFunc(func() { close(stop); calls.Wait() })
	w.Cleanup(end)
	return end
}

func callErr(conn *grpc.ClientConn, names []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var name wrapperspb.StringValue
	err := conn.Invoke(ctx, "/shop.Reviews/Get", &emptypb.Empty{}, &name)
	if err == nil && !slices.Contains(names, name.GetValue()) {
		err = fmt.Errorf("%q answered", name.GetValue())
	}
	return err
}

// TestProxylessCallers checks that rules for some callers apply to those only.
func TestProxylessCallers(t *testing.T) {
	w := newMesh(t)
	v1, v2 := w.backend("v1"), w.backend("v2")
	w.source.put(shop(v1.endpoint(""), v2.endpoint("")), versions("", "v1", "v2"), routes(
		`{"match":[{"sourceLabels":{"app":"canary"}}],"route":[`+to("v2")+`]},{"route":[`+to("v1")+`]}`))
	until(t, w.dial(target), "v1")
	canary := w.dialFrom(w.client("sidecar~10.9.0.2~b.default~default.svc.cluster.local", map[string]string{"app": "canary"}), target)
	always(t, canary, nil, "v2")
}

// TestProxylessChannels opens more channels in one process than an Envoy has
// streams.
func TestProxylessChannels(t *testing.T) {
	w := newMesh(t)
	v1 := w.backend("v1")
	var conns []*grpc.ClientConn
	const channels = 24
	for i := range channels {
		w.source.put(grpcService(fmt.Sprintf("s%d", i), v1.endpoint("")))
	}
	for i := range channels {
		conns = append(conns, w.dial(fmt.Sprintf("s%d:9080", i)))
		until(t, conns[i], "v1")
	}
	all := w.publisher.Proxies()
	if len(all) != channels {
		t.Fatalf("%d streams, want %d", len(all), channels)
	}
	for _, p := range all {
		if p.Transport != discovery.OverGRPC || !strings.HasPrefix(p.EnvoyVersion, "gRPC Go ") {
			t.Errorf("got %+v", p)
		}
	}
}
