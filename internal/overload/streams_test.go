package overload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/internal/outside"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// mostStreamMemory is what the process may ever have, in MiB. What streams hold, what
// they have not read and what is being decoded come to 512 MiB at most, and the garbage
// collector lets a heap double. Without bounds, the streams of a test take more than 2 GiB.
const mostStreamMemory = 1100

// greedy is what one connection does to take memory.
type greedy struct {
	name    string
	streams int
	ends    bool // the server must end the connection
	// run is one of its streams. It returns when the server ends the stream.
	run func(s stream, n int) error
}

type stream = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// TestGreedyStreams: one connection that takes all the memory it can get is ended,
// and the proxies and operators beside it are served.
func TestGreedyStreams(t *testing.T) {
	outside.Slow(t)
	names, metadata, streams := 100_000, 2<<20, 30
	if *whole {
		streams = 100
	}
	much := muchMetadata(metadata)
	for _, g := range []greedy{
		{"unknown names", streams, true, func(s stream, n int) error { return askForUnknown(s, n, names) }},
		{"names without reading", streams, true, func(s stream, n int) error { return askWithoutReading(s, n, names) }},
		{"node metadata", streams * 2 / 3, false, func(s stream, _ int) error { return tellMuch(s, much) }},
	} {
		t.Run(g.name, func(t *testing.T) { testGreedy(t, g, mostStreamMemory) })
	}
}

func testGreedy(t *testing.T, g greedy, mostMemory int64) {
	p := start(t)
	p.post(t, http.StatusCreated, service)
	before, _ := p.Memory()
	honest := p.attach(t)
	ctx, stop := context.WithCancel(t.Context())
	requests := make(chan latencies, 1)
	go func() { requests <- p.honest(ctx) }()

	ended := p.greedy(t, g)
	for i := range 5 {
		p.post(t, http.StatusCreated, strings.NewReplacer("name: web", fmt.Sprintf("name: web-%d", i), "web.default", fmt.Sprintf("web-%d.default", i)).Replace(service))
		if err := honest.await(fmt.Sprintf("web-%d", i)); err != nil {
			t.Errorf("the proxy beside it: %v", err)
		}
	}
	stop()
	served := <-requests
	if served.failed > 0 || len(served.took) == 0 {
		t.Errorf("of %d honest requests, %d failed: %v", len(served.took), served.failed, served.err)
	}
	metrics := p.metrics(t, "pilot_stream_")
	if g.ends && !strings.Contains(metrics, "pilot_stream_connections_evicted_total 1\n") {
		t.Errorf("the connection was not ended: its streams ended with %v; %s", ended, metrics)
	}
	now, most := p.Memory()
	if most == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	t.Logf("%d MiB before, %d MiB at most, %d MiB now; streams ended with %v; metrics: %s", before>>20, most>>20, now>>20, ended, metrics)
	if most > mostMemory<<20 {
		t.Errorf("the process had %d MiB, at most %d are allowed", most>>20, mostMemory)
	}
}

// greedy does its worst on one connection, and returns how its streams ended. The
// connection stays open until the end of the test.
func (p program) greedy(t *testing.T, g greedy) map[codes.Code]int {
	t.Helper()
	conn, err := grpc.NewClient(p.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var mu sync.Mutex
	ended := map[codes.Code]int{}
	var all sync.WaitGroup
	for n := range g.streams {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
			if err == nil {
				err = g.run(s, n)
			}
			mu.Lock()
			defer mu.Unlock()
			ended[status.Code(err)]++
		})
	}
	all.Wait()
	return ended
}

func nodeOf(n int) *corev3.Node {
	return &corev3.Node{Id: fmt.Sprintf("sidecar~10.8.0.%d~greedy-%d.default~default.svc.cluster.local", n%250, n)}
}

func unknownNames(stream, names int) []string {
	all := make([]string, names)
	for i := range all {
		all[i] = fmt.Sprintf("%d-%d", stream, i)
	}
	return all
}

// askForUnknown asks for endpoints that nobody has, and accepts all that it is told.
func askForUnknown(s stream, n, names int) error {
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: nodeOf(n), TypeUrl: endpointType, ResourceNamesSubscribe: unknownNames(n, names)}); err != nil {
		return endOf(s, err)
	}
	for told := 0; told < names; {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		told += len(r.GetResources())
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpointType, ResponseNonce: r.GetNonce()}); err != nil {
			return endOf(s, err)
		}
	}
	// It holds what it has until the others are there.
	time.Sleep(2 * time.Second)
	return s.CloseSend()
}

// askWithoutReading asks again and again, and reads nothing.
func askWithoutReading(s stream, n, names int) error {
	r := &discoveryv3.DeltaDiscoveryRequest{Node: nodeOf(n), TypeUrl: endpointType, ResourceNamesSubscribe: unknownNames(n, names)}
	for range 5 {
		if err := s.Send(r); err != nil {
			return endOf(s, err)
		}
		r.Node = nil
	}
	time.Sleep(2 * time.Second)
	return s.CloseSend()
}

// muchMetadata is a node's of so many bytes, which take many times as much when decoded.
func muchMetadata(bytes int) *structpb.Struct {
	values := make([]*structpb.Value, bytes/4)
	for i := range values {
		values[i] = structpb.NewNullValue()
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"MUCH": structpb.NewListValue(&structpb.ListValue{Values: values})}}
}

// tellMuch says a lot of itself.
func tellMuch(s stream, metadata *structpb.Struct) error {
	node := nodeOf(0)
	node.Metadata = metadata
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: clusterType}); err != nil {
		return endOf(s, err)
	}
	_, err := s.Recv()
	return err
}

// endOf is how a stream ended on which nothing can be sent any more.
func endOf(s stream, err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

// proxy is one that accepts all that it is told.
type proxy struct {
	mu       sync.Mutex
	clusters map[string]bool // by name
	more     chan struct{}   // closed with the next response
	err      error
}

func (p program) attach(t *testing.T) *proxy {
	t.Helper()
	conn, err := grpc.NewClient(p.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: clusterType}); err != nil {
		t.Fatal(err)
	}
	out := &proxy{clusters: map[string]bool{}, more: make(chan struct{})}
	go out.follow(s)
	return out
}

func (h *proxy) follow(s stream) {
	for {
		r, err := s.Recv()
		if err == nil {
			err = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
		}
		h.take(r, err)
		if err != nil {
			return
		}
	}
}

func (h *proxy) take(r *discoveryv3.DeltaDiscoveryResponse, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	for _, c := range r.GetResources() {
		h.clusters[c.GetName()] = true
	}
	for _, name := range r.GetRemovedResources() {
		delete(h.clusters, name)
	}
	close(h.more)
	h.more = make(chan struct{})
}

// has reports whether there is a cluster of a service, and what is closed when there may be.
func (h *proxy) has(service string) (bool, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.clusters {
		if strings.Contains(name, service+".") {
			return true, nil, nil
		}
	}
	return false, h.more, h.err
}

// await waits for a cluster of a service.
func (h *proxy) await(service string) error {
	for deadline := time.After(time.Minute); ; {
		told, more, err := h.has(service)
		if told || err != nil {
			return err
		}
		select {
		case <-more:
		case <-deadline:
			return fmt.Errorf("no cluster of %s came", service)
		}
	}
}

// metrics are those whose names begin so.
func (p program) metrics(t *testing.T, prefix string) string {
	t.Helper()
	resp, err := http.Get(p.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}
