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

// firstView returns the first view of an entry.
func (p *Publisher) firstView(g *compiled.Generation, entry *fleet.ViewEntry, traits mesh.Traits) (*compiled.View, error) {
	v, made, err := p.fleet.First(g, entry, func() (*ir.Config, diag.List, error) { return p.compileView(context.Background(), traits) })
	if made {
		p.found(v)
	}
	return v, err
}

// renewView brings an entry to a generation, and reports whether anything is new. On an
// error the entry is unchanged.
func (p *Publisher) renewView(ctx context.Context, g *compiled.Generation, entry *fleet.ViewEntry, representative *fleet.Client, ro *feedback.Rollout) (changed bool, err error) {
	return p.fleet.Renew(g, entry, fleet.Renewal{
		Representative: representative,
		Compile:        func() (*ir.Config, diag.List, error) { return p.compileView(ctx, representative.TraitsIn(g.Mesh)) },
		Good:           func(before, next *compiled.View) error { return wouldEmpty(g.Mesh, representative.Proxy, before, next) },
		Replacing:      func() { p.concerns(ro, entry, true) },
	})
}

// compileView compiles a view, and closes what must not be served as it is. The error is
// ErrOverBudget, that of ctx, or a bug.
func (p *Publisher) compileView(ctx context.Context, traits mesh.Traits) (config *ir.Config, problems diag.List, err error) {
	start := time.Now()
	err = p.recoverPanic("compile", func() error {
		config, problems, err = p.compiler.ProxyWithin(ctx, traits)
		return err
	})
	p.metrics.compile.Observe(time.Since(start).Seconds())
	if err != nil {
		err = fmt.Errorf("compile for role %s in %s: %w", traits.Role, traits.Domain, err)
	}
	return config, problems, err
}

// letGo closes the entries that the fleet has dropped.
func (p *Publisher) letGo() {
	for _, entry := range p.fleet.TakeDropped() {
		entry.Release(func() {
			_ = p.recoverPanic("release", func() error {
				p.compiler.Release(entry.Key, func() bool { return p.goesOn(entry.Key) })
				return nil
			})
		})
	}
}

// goesOn reports whether another entry of the key takes over. If none does, the problems of
// the view are gone.
func (p *Publisher) goesOn(key string) bool {
	if p.fleet.Has(key) {
		return true
	}
	p.newest.drop(key)
	return false
}

// found records problems that were found while a view was encoded, if the view is in force.
func (p *Publisher) found(v *compiled.View) {
	if entry := p.fleet.EntryOf(v); entry != nil {
		p.newest.found(entry)
	}
}
