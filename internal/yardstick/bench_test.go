package yardstick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/yardstick"
)

// How often and how long each is measured.
const (
	pairs = 7
	slice = time.Second
)

// BenchmarkAPI holds the API server against etcd itself and against the thin
// handler: as it ships, over processes, with syncs to disk. ratio is the median of
// the pairs, least the pair that is worst for ours.
func BenchmarkAPI(b *testing.B) {
	w := newWorld(b)
	ctx := b.Context()
	b.Run("Create", func(b *testing.B) {
		for _, clients := range []int{16, 64} {
			compare(b, fmt.Sprintf("Embedded/%d", clients),
				func() (float64, error) { return w.embedded.createFor(w.space(), clients, slice) },
				func() (float64, error) { return w.createRaw(ctx, w.space(), clients, slice) })
			compare(b, fmt.Sprintf("External/%d", clients),
				func() (float64, error) { return w.external.createFor(w.space(), clients, slice) },
				func() (float64, error) { return w.thin.createFor(w.space(), clients, slice) })
		}
	})
	const objects = 1000
	small := w.filled(b, objects)
	b.Run("Update", func(b *testing.B) {
		for _, clients := range []int{16, 64} {
			compare(b, fmt.Sprintf("Embedded/%d", clients),
				func() (float64, error) { return w.embedded.updateFor(small, clients, slice) },
				func() (float64, error) { return w.updateRaw(ctx, small, clients, slice) })
			compare(b, fmt.Sprintf("External/%d", clients),
				func() (float64, error) { return w.external.updateFor(small, clients, slice) },
				func() (float64, error) { return w.thin.updateFor(small, clients, slice) })
		}
	})
	b.Run("Get", func(b *testing.B) {
		raw := func() (float64, error) { return w.getRaw(ctx, small, 64, 64, slice) }
		memory := func() (float64, error) { return w.thin.getFor(small, objects, 64, slice) }
		compare(b, "Embedded/etcd", func() (float64, error) { return w.embedded.getFor(small, objects, 64, slice) }, raw)
		compare(b, "Embedded/memory", func() (float64, error) { return w.embedded.getFor(small, objects, 64, slice) }, memory)
		compare(b, "External/etcd", func() (float64, error) { return w.external.getFor(small, objects, 64, slice) }, raw)
	})
	b.Run("Watch", func(b *testing.B) { w.benchmarkWatch(b, 1000) })
	b.Run("List", func(b *testing.B) {
		for _, c := range []struct{ objects, clients int }{{objects, 16}, {10 * objects, 4}} {
			space := w.filled(b, c.objects)
			compare(b, fmt.Sprint(c.objects),
				func() (float64, error) { return w.embedded.listFor(space, c.clients, slice) },
				func() (float64, error) { return w.thin.listFor(space, c.clients, slice) })
		}
	})
}

// filled is a namespace with so many objects, everywhere.
func (w *world) filled(b *testing.B, n int) string {
	space := w.space()
	for _, a := range []*api{w.embedded, w.external, w.thin} {
		if err := a.fill(space, n); err != nil {
			b.Fatal(err)
		}
	}
	return space
}

func compare(b *testing.B, name string, ours, theirs func() (float64, error)) {
	b.Run(name, func(b *testing.B) {
		for range b.N {
			report(b, must(yardstick.Compare(pairs, ours, theirs))(b))
		}
	})
}

func report(b *testing.B, p yardstick.Pairs) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p.Median().Ours, "ours/s")
	b.ReportMetric(p.Median().Yardstick, "theirs/s")
	b.ReportMetric(p.Median().Ratio(), "ratio")
	b.ReportMetric(p.Least().Ratio(), "least")
}

func (w *world) benchmarkWatch(b *testing.B, n int) {
	space := w.space()
	ours, change, end, err := w.embedded.watch(space, n)
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	theirs, put, stop := w.watchRaw(b.Context(), space, n)
	defer stop()
	for range b.N {
		var each, raw time.Duration
		report(b, must(yardstick.Compare(pairs,
			func() (rate float64, err error) {
				rate, each, err = ours.eventsFor(slice, w.embedded.program.CPU, change)
				return rate, err
			},
			func() (rate float64, err error) {
				rate, raw, err = theirs.eventsFor(slice, w.etcd.CPU, put)
				return rate, err
			}))(b))
		b.ReportMetric(float64(each.Microseconds()), "us/event")
		b.ReportMetric(float64(raw.Microseconds()), "us/their-event")
	}
}
