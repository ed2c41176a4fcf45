package ads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/ads"
)

// source is what the servers of a test follow; the test changes it.
type source struct {
	mu       sync.Mutex
	revision int64
	all      map[schema.Key]*schema.Object
	changed  chan struct{}
	empty    bool                            // not synced yet
	past     []map[schema.Key]*schema.Object // all objects, by revision
}

func newSource(all ...*schema.Object) *source {
	s := &source{all: map[schema.Key]*schema.Object{}, changed: make(chan struct{})}
	s.put(all...)
	return s
}

func (s *source) Snapshot() ([]*schema.Object, int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*schema.Object
	for _, o := range s.all {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *schema.Object) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	return all, s.revision, !s.empty
}

// Since behaves like a store that keeps everything.
func (s *source) Since(revision int64) (changes []schema.Change, present int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty || revision < 1 || revision > s.revision {
		return nil, 0, false
	}
	before := s.past[revision-1]
	for key, o := range s.all {
		if before[key] != o {
			changes = append(changes, schema.Change{Before: before[key], After: o})
		}
	}
	for key, o := range before {
		if s.all[key] == nil {
			changes = append(changes, schema.Change{Before: o})
		}
	}
	return changes, s.revision, true
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (*source) Err() error { return nil }

// put stores objects in one revision.
func (s *source) put(objects ...*schema.Object) {
	s.change(func() {
		for _, o := range objects {
			s.all[o.Key()] = o
		}
	})
}

func (s *source) remove(objects ...*schema.Object) {
	s.change(func() {
		for _, o := range objects {
			delete(s.all, o.Key())
		}
	})
}

func (s *source) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.revision++
	s.past = append(s.past, maps.Clone(s.all))
	close(s.changed)
	s.changed = make(chan struct{})
}

// publish stores objects and lets them be published.
func (s *source) publish(objects ...*schema.Object) {
	s.put(objects...)
	settle()
}

func (s *source) withdraw(objects ...*schema.Object) {
	s.remove(objects...)
	settle()
}

// settle lets every hold-off end, by the clock of the bubble.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func object(kind, name, spec string) *schema.Object {
	k, ok := schema.KindByName(kind)
	if !ok {
		panic("no kind " + kind)
	}
	o, err := schema.New(k, metav1.ObjectMeta{Name: name, Namespace: "default"}, []byte(spec))
	if err != nil {
		panic(err)
	}
	return o
}

// service returns a service with one HTTP port and an instance of each version at
// 10.0.N.V.
func service(host string, port, n int, versions ...string) *schema.Object {
	endpoints := ""
	for i, v := range versions {
		if i > 0 {
			endpoints += ","
		}
		endpoints += fmt.Sprintf(`{"address":"10.0.%d.%d","ports":{"http":8080},"labels":{"version":%q}}`, n, i+1, v)
	}
	return object("ServiceEntry", host, fmt.Sprintf(
		`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":%d,"name":"http","protocol":"HTTP"}],"endpoints":[%s]}`,
		host, port, endpoints))
}

// toVersion sends requests for a host to the instances of one version, through a
// cluster of their own.
func toVersion(host, version string) *schema.Object {
	return object("RouteRule", "version-"+host, fmt.Sprintf(`{"destination":{"service":%q},"route":[{"labels":{"version":%q}}]}`, host, version))
}

// timeout changes the routes of a host, and no cluster.
func timeout(host string, seconds int) *schema.Object {
	return object("RouteRule", "timeout-"+host, fmt.Sprintf(
		`{"destination":{"service":%q},"precedence":1,"route":[{"weight":100}],"httpReqTimeout":{"simpleTimeout":{"timeout":"%ds"}}}`, host, seconds))
}

// pool changes the cluster of a host, and no route.
func pool(host string, connections int) *schema.Object {
	return object("DestinationPolicy", "pool-"+host, fmt.Sprintf(
		`{"destination":{"service":%q},"circuitBreaker":{"simpleCb":{"maxConnections":%d}}}`, host, connections))
}

const (
	nodeA = "sidecar~10.9.0.1~a.default~default.svc.cluster.local"
	nodeB = "sidecar~10.9.0.2~b.default~default.svc.cluster.local"
)

func clusterOf(host, version string) string { return "out." + host + "|http|version=" + version }

// server is a replica.
type server struct {
	t         testing.TB
	publisher *discovery.Publisher
	listener  *bufconn.Listener
	private   *bufconn.Listener
	privately bool                             // whether clients connect to the private listener
	speaks    credentials.TransportCredentials // credentials of the clients
	stop      func()
}

// serve starts a replica inside a bubble (testing/synctest). The replica is idle
// when serve returns.
func serve(t testing.TB, src discovery.Source, options ...func(*discovery.Options)) *server {
	t.Helper()
	return serveAs(t, ads.Options{}, src, options...)
}

func serveAs(t testing.TB, front ads.Options, src discovery.Source, options ...func(*discovery.Options)) *server {
	t.Helper()
	opts := discovery.Options{Source: src}
	for _, o := range options {
		o(&opts)
	}
	s := &server{t: t, publisher: discovery.New(opts), listener: bufconn.Listen(1 << 16), private: bufconn.Listen(1 << 16), speaks: insecure.NewCredentials()}
	front.Discovery = s.publisher
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.publisher.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	all.Go(func() {
		if err := ads.New(front).Serve(ctx, s.listener, s.private); !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
	})
	s.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(s.stop)
	synctest.Wait()
	return s
}

// dial returns a proxy's own connection.
func (s *server) dial() *grpc.ClientConn {
	s.t.Helper()
	to := s.listener
	if s.privately {
		to = s.private
	}
	conn, err := grpc.NewClient("passthrough:///replica",
		grpc.WithTransportCredentials(s.speaks),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return to.DialContext(ctx) }))
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}
