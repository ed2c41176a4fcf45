package overload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// greedyStreams opens streams as fast as it can, says and asks for the most that a request
// may hold on each of them, and reads nothing. It connects again when it is ended.
type greedyStreams struct {
	requests [][]byte // encoded beforehand: the processor is the server's

	connections, opened, sent atomic.Int64
}

func newGreedyStreams(t *testing.T) *greedyStreams {
	t.Helper()
	g := &greedyStreams{}
	much := muchMetadata(2 << 20)
	for n := range 4 {
		who := nodeOf(n)
		who.Metadata = much
		request, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{Node: who, TypeUrl: endpointType, ResourceNamesSubscribe: unknownNames(n, 100_000)})
		if err != nil {
			t.Fatal(err)
		}
		g.requests = append(g.requests, request)
	}
	return g
}

func (g *greedyStreams) String() string {
	return fmt.Sprintf("%d streams over %d connections, %d requests sent, of %d KiB", g.opened.Load(), g.connections.Load(), g.sent.Load(), len(g.requests[0])>>10)
}

// run goes on until ctx ends.
func (g *greedyStreams) run(ctx context.Context, p program) error {
	for ctx.Err() == nil {
		if err := g.connect(ctx, p.XDS); err != nil {
			return err
		}
	}
	return nil
}

func (g *greedyStreams) connect(ctx context.Context, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(encoded{})))
	if err != nil {
		return err
	}
	defer conn.Close()
	g.connections.Add(1)
	// The first stream that ends has the others end, for all of a connection are ended at once.
	streams, ctx := errgroup.WithContext(ctx)
	for n := range 100 {
		streams.Go(func() error { return g.ask(ctx, conn, n) })
	}
	_ = streams.Wait() // That they end is no failure of the test.
	return nil
}

// ask sends until the server ends the stream, which is the error.
func (g *greedyStreams) ask(ctx context.Context, conn *grpc.ClientConn, n int) error {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		return err
	}
	g.opened.Add(1)
	for ; ; n++ {
		if err := s.SendMsg(g.requests[n%len(g.requests)]); err != nil {
			return err
		}
		g.sent.Add(1)
	}
}

// encoded is the codec of messages that are encoded already.
type encoded struct{}

func (encoded) Name() string                  { return "proto" }
func (encoded) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (encoded) Unmarshal([]byte, any) error   { return errors.New("nothing is read") }

// greedyObjects writes objects that are just within the budgets and just beyond, and large
// texts, as fast as it can.
type greedyObjects struct {
	accepted, refused, later atomic.Int64
}

func newGreedyObjects() *greedyObjects { return &greedyObjects{} }

func (g *greedyObjects) String() string {
	return fmt.Sprintf("%d writes accepted, %d refused, %d answered 429", g.accepted.Load(), g.refused.Load(), g.later.Load())
}

// forms are the texts that one object has in turn. The ports and endpoints of a
// ServiceEntry make up 99,200 parts or 103,200, of 100,000 that one may have; the routes of
// a VirtualService for each port of its hosts 100,000 or 104,000.
func forms(worker int) (path, name string, texts []string) {
	name = fmt.Sprintf("greedy-%d", worker)
	const ports = 20
	if worker%2 == 1 {
		routes := func(n int) string {
			return fmt.Sprintf(`{"hosts":%s,"http":%s}`, items(ports, fmt.Sprintf(`"greedy-%d-#.example"`, worker-1)),
				items(n, fmt.Sprintf(`{"match":[{"uri":{"prefix":"/p#-%d"}}],"route":[{"destination":{"host":"greedy-%d-1.example","port":{"number":1}}}]}`, n, worker-1)))
		}
		return networkingAPI + "virtualservices", name, []string{object("VirtualService", name, routes(120)), object("VirtualService", name, routes(260)), object("VirtualService", name, routes(125))}
	}
	entry := func(endpointsOf int) string {
		return object("ServiceEntry", name, entrySpec(name, ports, ports, 0, "HTTP", endpoints(endpointsOf)))
	}
	return entries, name, []string{
		entry(240), entry(250), entry(239),
		strings.NewReplacer(fmt.Sprintf("large-%d", worker), name).Replace(large(worker, 1_000_000)),
	}
}

func object(kind, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, spec)
}

// run goes on until ctx ends.
func (g *greedyObjects) run(ctx context.Context, p program) error {
	var workers errgroup.Group
	for n := range 4 {
		workers.Go(func() error { return g.write(ctx, p, n) })
	}
	return workers.Wait()
}

// write makes an object, changes it a few times and deletes it, again and again.
func (g *greedyObjects) write(ctx context.Context, p program, worker int) error {
	path, name, texts := forms(worker)
	const changes = 9
	for n := 0; ctx.Err() == nil; n++ {
		method, to, text := "PUT", path+"/"+name, texts[n%len(texts)]
		switch n % changes {
		case 0:
			method, to = "POST", path
		case changes - 1:
			method, text = "DELETE", ""
		}
		code, err := p.send(method, to, []byte(text))
		switch {
		case err != nil:
			return err
		case code/100 == 2:
			g.accepted.Add(1)
		case code == http.StatusTooManyRequests:
			g.later.Add(1)
		case code == http.StatusUnprocessableEntity, code == http.StatusNotFound, code == http.StatusConflict:
			g.refused.Add(1) // Or an earlier one was.
		default:
			return fmt.Errorf("%s %s was answered %d", method, to, code)
		}
	}
	return nil
}
