package ads_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// crowdAddress makes this program a crowd of clients of the server there.
const crowdAddress = "PILOT_CROWD_ADDRESS"

// A crowd is a process of delta clients that accept everything, each on its own
// connection, so that their memory does not count as the server's. It reads
// "connect N NAMESPACES SERVICES" and "expect N", and answers each twice: with the
// number of unexpected route tables before, and, when N have arrived since, with
// the time of the last one.
func crowd(addr string) {
	var tables tally
	expect := func(n int) { fmt.Println(tables.expect(n)) }
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var streams, namespaces, services int
		if _, err := fmt.Sscanf(in.Text(), "connect %d %d %d", &streams, &namespaces, &services); err == nil {
			expect(streams)
			names := endpointNames(services)
			// Some at a time, because a server has a backlog.
			room := make(chan struct{}, 64)
			for n := range streams {
				room <- struct{}{}
				go attend(addr, names, n, n%namespaces, tables.add, func() { <-room })
			}
		} else if _, err := fmt.Sscanf(in.Text(), "expect %d", &streams); err == nil {
			expect(streams)
		}
		fmt.Println(tables.wait())
	}
}

// tally waits for a number.
type tally struct {
	mu   sync.Mutex
	came int
	want int
	done chan int64
}

func (t *tally) expect(n int) (tooMany int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tooMany = t.came - t.want
	t.came, t.want, t.done = 0, n, make(chan int64, 1)
	return tooMany
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.came++; t.came == t.want {
		t.done <- time.Now().UnixNano()
	}
}

func (t *tally) wait() int64 {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	return <-done
}

// raw leaves messages undecoded: decoding them would cost more than serving them.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// attend is one client, until the end.
func attend(addr string, names []string, n, namespace int, told, connected func()) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		panic(err)
	}
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		panic(err)
	}
	say := func(r *discoveryv3.DeltaDiscoveryRequest) {
		text, _ := proto.Marshal(r)
		if err := stream.SendMsg(&text); err != nil {
			panic(err)
		}
	}
	node := fmt.Sprintf("sidecar~10.%d.%d.%d~p.x~space-%d.svc.cluster.local", 100+n/62500, n/250%250, n%250+1, namespace)
	say(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node, Extensions: extensions()}, TypeUrl: cds})
	once := sync.OnceFunc(connected)
	for asked := false; ; {
		var text []byte
		if err := stream.RecvMsg(&text); err != nil {
			panic(err)
		}
		typeURL, nonce := headOf(text)
		if !asked {
			asked = true
			say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: names})
			say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: lds})
			say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: rds, ResourceNamesSubscribe: []string{"80"}})
		}
		say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: nonce})
		if typeURL == rds {
			once()
			told()
		}
	}
}

// extensions are as many as an Envoy lists of itself, in 61 KB.
var extensions = sync.OnceValue(func() []*corev3.Extension {
	all := make([]*corev3.Extension, 1_000)
	for i := range all {
		all[i] = &corev3.Extension{Name: fmt.Sprintf("envoy.filters.http.number_%03d", i), Category: "envoy.filters.http.which"}
	}
	return all
})

// headOf returns type and nonce of a response.
func headOf(text []byte) (typeURL, nonce string) {
	for len(text) > 0 {
		field, kind, n := protowire.ConsumeTag(text)
		text = text[n:]
		if n = protowire.ConsumeFieldValue(field, kind, text); n < 0 {
			panic("no response")
		}
		if value, _ := protowire.ConsumeBytes(text); field == 4 {
			typeURL = string(value)
		} else if field == 5 {
			nonce = string(value)
		}
		text = text[n:]
	}
	return typeURL, nonce
}

func endpointNames(services int) []string {
	names := make([]string, services)
	for i := range names {
		names[i] = fmt.Sprintf("service-%d.example|http", i)
	}
	return names
}

// crowdOf is a crowd as the controlling process sees it.
type crowdOf struct {
	tb  testing.TB
	in  io.Writer
	out *bufio.Reader
}

func gather(tb testing.TB, addr string) *crowdOf {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crowdAddress+"="+addr)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		tb.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &crowdOf{tb: tb, in: in, out: bufio.NewReader(out)}
}

// say starts a command and returns a function that waits for its end and returns
// the time of that.
func (c *crowdOf) say(format string, args ...any) (wait func() time.Time) {
	c.tb.Helper()
	fmt.Fprintf(c.in, format+"\n", args...)
	if tooMany := c.number(); tooMany != 0 {
		c.tb.Errorf("%d tables were told before to those whom they do not concern", tooMany)
	}
	return func() time.Time { return time.Unix(0, c.number()) }
}

func (c *crowdOf) number() int64 {
	c.tb.Helper()
	var n int64
	if _, err := fmt.Fscanln(c.out, &n); err != nil {
		c.tb.Fatalf("the clients are gone: %v", err)
	}
	return n
}
