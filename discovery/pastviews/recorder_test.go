package pastviews

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// slow is a compiler that takes a second for a view.
type slow struct{ spent *time.Duration }

func (s slow) ProxyWithin(context.Context, mesh.Traits) (*ir.Config, diag.List, error) {
	time.Sleep(time.Second)
	*s.spent += time.Second
	return &ir.Config{}, nil, nil
}

func (slow) Advance(*mesh.Snapshot)      {}
func (slow) Release(string, func() bool) {}
func (slow) Close()                      {}

// TestPastTakesItsShare checks that a proxy which asks for all states of the past again and
// again, while the state changes all the time, has them compiled only within their share.
func TestPastTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spent time.Duration
		encoder := compiled.NewEncoder(10, slog.New(slog.DiscardHandler), func(_ string, do func() error) error { return do() }, func(*compiled.View) {})
		past := New(Options{
			Since:       func(int64) ([]schema.Change, int64, bool) { return nil, 0, false },
			NewCompiler: func() Compiler { return slow{&spent} },
			Encoder:     encoder, MaxViews: 10, Alone: true,
		})
		snapshot := func(revision int64) *mesh.Snapshot { return mesh.NewSnapshot(revision, mesh.DefaultSettings(), nil) }
		now := compiled.NewGeneration(encoder, snapshot(1), nil)
		past.Begin(now.Mesh)
		time.Sleep(PastFor) // The states of the start are forgotten.
		synctest.Wait()

		const changes = 200
		proxy := mesh.Proxy{ID: "a", IP: "10.0.0.1", Role: mesh.Sidecar}
		began := time.Now()
		for n := range int64(changes) {
			next := compiled.NewGeneration(encoder, snapshot(n+2), now)
			past.End(now, next)
			now = next
			past.ViewsOf(proxy, compiled.NewView(now, "key", &ir.Config{}), now.Serial, func(*compiled.View) bool { return false })
			time.Sleep(time.Second)
		}
		took := time.Since(began)
		if most := savings + time.Duration(float64(took)*share) + time.Second; spent > most || spent < savings {
			t.Errorf("%v of %v were spent on the past, want between %v and %v", spent, took, savings, most)
		}
	})
}
