package ads_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/ads"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// inNamespace is the number of streams in each namespace.
const inNamespace = 10

// TestStreamsOverTCP runs a small version of the benchmark: of 60 clients in
// another process, all receive a route for everybody, and 10 receive one for a
// namespace.
func TestStreamsOverTCP(t *testing.T) {
	w := newCrowded(t, 100, 60)
	w.change(w.everybody(), 60)
	w.change(w.few(), inNamespace)
	w.change(w.everybody(), 60)
}

// BenchmarkStreams runs many delta streams over loopback, each on its own
// connection, ten in a namespace. It reports the memory of a stream as all memory
// of the process, and as that of heap and stacks. A change is of a route, for one
// namespace or for everybody. Its CPU is all of the server's, from the write to the
// acknowledgments.
func BenchmarkStreams(b *testing.B) {
	for _, streams := range []int{1_000, 5_000, 10_000} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			w := newCrowded(b, 100, streams)
			var few, all time.Duration
			var last time.Duration
			for b.Loop() {
				cpu, _ := w.change(w.few(), inNamespace)
				few += cpu
				cpu, took := w.change(w.everybody(), streams)
				all += cpu
				last += took
			}
			perOp := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(b.N) }
			b.ReportMetric(0, "ns/op") // both changes together, which is of no use
			b.ReportMetric(float64(w.inUse)/float64(streams), "B-heap+stack/stream")
			b.ReportMetric(float64(w.resident)/float64(streams), "B-rss/stream")
			b.ReportMetric(perOp(few), "ms-cpu/change-for-10")
			b.ReportMetric(perOp(all), "ms-cpu/change-for-all")
			b.ReportMetric(perOp(last), "ms-to-last/change-for-all")
		})
	}
}

// BenchmarkSent measures the time from the acknowledgment of a write until its
// bytes have arrived over a stream, in a mesh of 1,000 services and without a
// hold-off.
func BenchmarkSent(b *testing.B) {
	w := newCrowded(b, 1_000, 1)
	var all []time.Duration
	for b.Loop() {
		_, took := w.change(w.everybody(), 1)
		all = append(all, took)
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op") // includes the work of the benchmark itself
	b.ReportMetric(all[len(all)/2].Seconds()*1e3, "ms-p50")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "ms-p99")
}

// crowded is a server with clients.
type crowded struct {
	testing.TB
	store      *memory.Store
	clients    *crowdOf
	namespaces int
	step       int

	inUse, resident int64 // memory that the clients made the server use
}

func newCrowded(tb testing.TB, services, streams int) *crowded {
	w := &crowded{TB: tb, store: memory.New(), namespaces: max(1, streams/inNamespace)}
	for i := range services {
		host := fmt.Sprintf("service-%d.example", i)
		w.create(service(host, 80, i, "v1"))
	}
	for i := range w.namespaces {
		// The registry knows a namespace by its objects.
		w.create(within(fmt.Sprintf("space-%d", i), object("DestinationRule", "of", `{"host":"nobody.example","exportTo":["."]}`)))
	}
	w.create(w.everybody())
	w.create(w.few())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w.serve(listener)
	w.clients = gather(tb, listener.Addr().String())
	inUse, resident := memoryOf(tb)
	w.clients.say("connect %d %d %d", streams, w.namespaces, services)()
	nowInUse, nowResident := memoryOf(tb)
	w.inUse, w.resident = nowInUse-inUse, nowResident-resident
	return w
}

func (w *crowded) create(o *schema.Object) {
	w.Helper()
	if _, err := w.store.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

func (w *crowded) serve(listener net.Listener) {
	objects := cache.New(w.store, cache.Options{})
	publisher := discovery.New(discovery.Options{Source: objects, HoldOff: time.Nanosecond})
	front := ads.New(ads.Options{Discovery: publisher})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{objects.Run, publisher.Run, func(ctx context.Context) error { return front.Serve(ctx, listener) }} {
		all.Go(func() { _ = run(ctx) })
	}
	w.Cleanup(func() { cancel(); all.Wait() })
	if err := publisher.Await(ctx, w.revision()); err != nil {
		w.Fatal(err)
	}
}

func (w *crowded) revision() int64 {
	revision, err := w.store.Revision(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return revision
}

// everybody returns a route for all.
func (w *crowded) everybody() *schema.Object {
	w.step++
	return object("VirtualService", "everybody", routeTo("service-0.example", w.step, "*"))
}

// few returns a route for the first namespace.
func (w *crowded) few() *schema.Object {
	w.step++
	return object("VirtualService", "a-few", routeTo("service-1.example", w.step, "space-0"))
}

func routeTo(host string, step int, exportTo string) string {
	return fmt.Sprintf(`{"hosts":[%q],"exportTo":[%q],"http":[{"timeout":"%dms","route":[{"destination":{"host":%[1]q}}]}]}`, host, exportTo, step+1)
}

func within(namespace string, o *schema.Object) *schema.Object {
	moved, err := schema.New(o.Kind, metav1.ObjectMeta{Name: o.Meta.Name, Namespace: namespace}, o.SpecJSON())
	if err != nil {
		panic(err)
	}
	return moved
}

// change writes an object and waits until that many clients have received it. took
// begins when the write is acknowledged.
func (w *crowded) change(o *schema.Object, concerned int) (cpu, took time.Duration) {
	w.Helper()
	wait := w.clients.say("expect %d", concerned)
	before := cpuTime(w)
	if _, err := w.store.Update(w.Context(), o); err != nil {
		w.Fatal(err)
	}
	acknowledged := time.Now()
	last := wait()
	return cpuTime(w) - before, last.Sub(acknowledged)
}

// cpuTime returns the CPU time of this process.
func cpuTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// memoryOf returns the memory that this process uses, and what it holds of the
// machine.
func memoryOf(tb testing.TB) (inUse, resident int64) {
	tb.Helper()
	// Pools survive one collection, and each collection halves unneeded stacks.
	for range 5 {
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), residentOf(tb)
}

func residentOf(tb testing.TB) int64 {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Skip(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		tb.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
