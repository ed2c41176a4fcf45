package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// firstView is the view of an entry that had none.
func (s *Publisher) firstView(g *compiled.Generation, sl *fleet.ViewEntry, mv mesh.View) (*compiled.View, error) {
	v, made, err := s.fleet.First(g, sl, func() (*ir.Config, diag.List, error) { return s.compileView(context.Background(), mv) })
	if made {
		s.found(v)
	}
	return v, err
}

// renewView brings an entry to a generation, and reports whether anything is new. With
// an error it is what it was.
func (s *Publisher) renewView(ctx context.Context, g *compiled.Generation, sl *fleet.ViewEntry, speaker *fleet.Client, ro *feedback.Rollout) (changed bool, err error) {
	return s.fleet.Renew(g, sl, fleet.Renewal{
		Speaker:   speaker,
		Compile:   func() (*ir.Config, diag.List, error) { return s.compileView(ctx, speaker.ViewIn(g.Mesh)) },
		Good:      func(before, next *compiled.View) error { return wouldEmpty(g.Mesh, speaker.Proxy, before, next) },
		Replacing: func() { s.concerns(ro, sl, true) },
	})
}

// compileView compiles, and closes what must not be served as it is. The error
// is ErrOverBudget, that of ctx, or a mistake of ours.
func (s *Publisher) compileView(ctx context.Context, mv mesh.View) (config *ir.Config, problems diag.List, err error) {
	start := time.Now()
	err = s.recoverPanic("compile", func() error {
		config, problems, err = s.compiler.ProxyWithin(ctx, mv)
		return err
	})
	s.metrics.compile.Observe(time.Since(start).Seconds())
	if err != nil {
		err = fmt.Errorf("compile for role %s in %s: %w", mv.Role, mv.Domain, err)
	}
	return config, problems, err
}

// letGo closes the entries that the fleet has dropped.
func (s *Publisher) letGo() {
	for _, sl := range s.fleet.TakeDropped() {
		sl.Release(func() {
			_ = s.recoverPanic("release", func() error {
				s.compiler.Release(sl.Key, func() bool { return s.goesOn(sl.Key) })
				return nil
			})
		})
	}
}

// goesOn reports whether another entry of the key goes on with what is there. Where
// none does, its problems are gone.
func (s *Publisher) goesOn(key string) bool {
	if s.fleet.Has(key) {
		return true
	}
	s.newest.drop(key)
	return false
}

// found takes note of what was found while a view was encoded, if it is in force.
func (s *Publisher) found(v *compiled.View) {
	if sl := s.fleet.EntryOf(v); sl != nil {
		s.newest.found(sl)
	}
}
