package discovery_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// streamed is a proxy on a delta stream that accepts all it is told, without the
// connection.
type streamed struct {
	*discovery.Stream
	told   int    // responses
	shared []byte // of the last
}

// stream has a proxy of one of the namespaces connect, and take all that it is due.
func (l *large) stream(tb testing.TB, space int) *streamed {
	node := fmt.Sprintf("sidecar~10.%d.%d.%d~p.x~space-%d.svc.cluster.local", 100+l.proxies/62500, l.proxies/250%250, l.proxies%250+1, space)
	l.proxies++
	st, err := l.s.Connect(mesh.Node{ID: node}, discovery.Delta)
	if err != nil {
		tb.Fatal(err)
	}
	p := &streamed{Stream: st}
	p.ask(tb, discovery.Request{TypeURL: discovery.ClusterType})
	p.ask(tb, discovery.Request{TypeURL: discovery.EndpointType, Subscribe: l.endpoints()})
	p.ask(tb, discovery.Request{TypeURL: discovery.ListenerType})
	p.ask(tb, discovery.Request{TypeURL: discovery.RouteType, Subscribe: []string{strings.Clone("80")}})
	return p
}

// endpoints are the names of all sets, as a message would have them.
func (l *large) endpoints() []string {
	var names []string
	for i := range meshServices {
		names = append(names, fmt.Sprintf("service-%d.example|http", i))
	}
	return names
}

func (p *streamed) ask(tb testing.TB, r discovery.Request) {
	tb.Helper()
	if err := p.Receive(r); err != nil {
		tb.Fatal(err)
	}
	p.takeAll(tb)
}

// takeAll accepts what is due now.
func (p *streamed) takeAll(tb testing.TB) {
	tb.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		r, err := p.Next(ended)
		if err != nil {
			return // Nothing is due.
		}
		p.told++
		_, shared := r.Encode()
		p.shared = *shared
		if err := p.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestStreamsOfOthers: a change for some is sent to nobody else.
func TestStreamsOfOthers(t *testing.T) {
	l := newLarge(t, 20, 10, 2, plain)
	var all []*streamed
	for i := range 30 {
		p := l.stream(t, i%10)
		defer p.Close()
		p.told = 0
		all = append(all, p)
	}
	l.changeScoped(t)
	concerned := 0
	for _, p := range all {
		if p.takeAll(t); p.told > 0 {
			concerned++
		}
	}
	if concerned != 6 {
		t.Errorf("%d of 30 proxies are told of a route for the callers of 2 of 10 namespaces, want 6", concerned)
	}
}

// TestStreamsShareBytes: proxies of all views are told one change in the same bytes,
// and when they have acknowledged it, nothing of that is kept.
func TestStreamsShareBytes(t *testing.T) {
	// What is shared is kept until the next collection.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	l := newLarge(t, 20, 10, 0, plain)
	var all []*streamed
	for i := range 30 {
		p := l.stream(t, i%10)
		defer p.Close()
		all = append(all, p)
	}
	l.changeRoute(t)
	bytes := map[*byte]int{}
	for _, p := range all {
		p.takeAll(t)
		bytes[unsafe.SliceData(p.shared)]++
	}
	if len(bytes) != 1 {
		t.Errorf("30 proxies are told the same in %d places of the memory: %v", len(bytes), bytes)
	}
	for range 1_000 {
		if runtime.GC(); l.s.Contents() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d responses are kept that everybody has acknowledged", l.s.Contents())
}

// BenchmarkStreamMemory tells what a further stream takes, but for its connection.
func BenchmarkStreamMemory(b *testing.B) {
	l := newLarge(b, meshServices, meshViews, 0, plain)
	for i := range meshViews {
		l.stream(b, i)
	}
	for b.Loop() {
		before := heap()
		const streams = 1_000
		all := make([]*streamed, streams)
		for i := range all {
			all[i] = l.stream(b, i%meshViews)
		}
		b.ReportMetric(float64(int64(heap()-before))/streams, "B/stream")
		runtime.KeepAlive(all)
	}
}

// BenchmarkStreamsChange is one change of a route among 10,000 streams in 1,000
// namespaces: for the callers of one of them, which are 10, or for all.
func BenchmarkStreamsChange(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*large, testing.TB)
	}{
		{"few", (*large).changeScoped},
		{"all", (*large).changeRoute},
	} {
		b.Run(c.name, func(b *testing.B) {
			const streams, namespaces = 10_000, 1_000
			l := newLarge(b, meshServices, namespaces, 1, plain)
			var all []*streamed
			for i := range streams {
				all = append(all, l.stream(b, i%namespaces))
			}
			cpu, told := time.Duration(0), 0
			for b.Loop() {
				before := cpuTime(b)
				c.change(l, b)
				for _, p := range all {
					p.told = 0
					if p.IsWoken() {
						p.takeAll(b)
					}
					told += p.told
				}
				cpu += cpuTime(b) - before
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "µs-cpu/op")
			b.ReportMetric(float64(told)/float64(b.N), "responses/op")
		})
	}
}

// BenchmarkObjectStatuses is a look at 10,000 streams, and a scrape of the metrics.
func BenchmarkObjectStatuses(b *testing.B) {
	l := newLarge(b, meshServices, meshViews, 1, plain)
	reg := prometheus.NewRegistry()
	l.s = discovery.New(discovery.Options{Source: l.src, Settings: settings(), Registry: reg})
	once(b, l.s)
	for i := range 10_000 {
		l.stream(b, i%meshViews)
	}
	b.Run("look", func(b *testing.B) {
		b.ReportAllocs()
		var last *discovery.ObjectStatuses
		for b.Loop() {
			last = l.s.ObjectStatuses(last)
		}
	})
	b.Run("scrape", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reg.Gather(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
