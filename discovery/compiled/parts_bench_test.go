package compiled

import (
	"runtime"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// TestFurtherViewTakesLittle: it has pointers to what it shares.
func TestFurtherViewTakesLittle(t *testing.T) {
	const n, views = 1000, 50
	e, config := testEncoder(0), testConfig(n)
	kept := []*V3Answers{encodeV3(testView(e, config), "10.0.0.1")}
	before := heapInUse()
	for range views {
		kept = append(kept, encodeV3(testView(e, further(config)), "10.0.0.1"))
	}
	if grown := (heapInUse() - before) / views; grown > 100<<10 {
		t.Errorf("%d KiB for each further view, its lists of pointers among them", grown>>10)
	}
	runtime.KeepAlive(kept)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkParts encodes a cluster and a virtual host of two routes for each of
// 1,000 services: from nothing, for a further view that shares all parts, and
// with one changed virtual host; the bodies are of the changed table.
func BenchmarkParts(b *testing.B) {
	const n = 1000
	perService := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/service")
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			e, config := testEncoder(0), testConfig(n)
			b.StartTimer()
			encodeV3(testView(e, config), "10.0.0.1")
		}
		perService(b)
	})
	b.Run("further", func(b *testing.B) {
		b.ReportAllocs()
		e, config := testEncoder(0), testConfig(n)
		encodeV3(testView(e, config), "10.0.0.1")
		for b.Loop() {
			encodeV3(testView(e, further(config)), "10.0.0.1")
		}
		perService(b)
	})
	changes := func(b *testing.B, use func(*V3Answers)) {
		b.ReportAllocs()
		e, config := testEncoder(0), testConfig(n)
		use(encodeV3(testView(e, config), "10.0.0.1"))
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			next := changed(config, time.Duration(i+1)*time.Second)
			b.StartTimer()
			use(encodeV3(testView(e, next), "10.0.0.1"))
		}
	}
	b.Run("changed", func(b *testing.B) { changes(b, func(*V3Answers) {}) })
	b.Run("changed/body", func(b *testing.B) {
		changes(b, func(a *V3Answers) { a.Routes.Named("80").Answer().Compose() })
	})
	b.Run("table", func(b *testing.B) {
		p := &testEncoder(0).V3
		config := testConfig(n)
		p.Table(config.RouteTables[0])
		for b.Loop() {
			table := *config.RouteTables[0]
			p.Table(&table)
		}
	})
	b.Run("listener", func(b *testing.B) {
		p := &testEncoder(0).V3
		for b.Loop() {
			p.Listener(&ir.Listener{IP: "0.0.0.0", Port: 80, HTTP: &ir.HTTPListener{Table: "80"}}, v3.Polled(time.Second))
		}
	})
}
