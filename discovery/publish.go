package discovery

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// compiler is the part of compile.Compiler that discovery uses.
type compiler interface {
	Advance(next *mesh.Snapshot)
	ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error)
	Release(key string, wanted func() bool)
	OnDemand(traits mesh.Traits) mesh.OnDemandMode
	Close()
	Concerned() []string
	Problems() diag.List
	ProblemsOf(objects map[diag.Ref]bool) diag.List
	References(key schema.Key) diag.References
	Ask(do func(*compile.Questions) error) error
}

// publication brings all entries to one generation.
type publication struct {
	*Publisher
	ctx     context.Context
	next    *compiled.Generation
	rollout *feedback.Rollout // nil for the first
	large   bool              // whether it has a large object
	waited  time.Duration     // for other work to end, before it began

	mu      sync.Mutex
	changed []*fleet.ViewEntry
	kept    map[string]bool // reasons why some parts stay as they were
}

// publish brings all proxies that asked recently to the next generation. On an error
// nothing has changed.
func (p *Publisher) publish(ctx context.Context, next *compiled.Generation, ro *feedback.Rollout, large bool) (*publication, error) {
	done := &publication{Publisher: p, ctx: ctx, next: next, rollout: ro, large: large, kept: map[string]bool{}}
	moved, err := done.advance()
	if err != nil {
		return nil, err
	}
	p.makeRoomForPresent()
	done.renewAll()
	for _, entry := range p.fleet.StreamedFrom(moved) {
		p.concerns(ro, entry, false)
	}
	if ro != nil {
		p.convergence.Seal(ro)
	}
	p.fleet.Settle(next.Serial, done.goodFor)
	next.Complete()
	p.fleet.Wake(done.andNew(moved))
	p.letGo()
	return done, nil
}

// advance makes the next generation the current one: new proxies are compiled for it, and
// endpoints are those of its clusters. No proxy gets another view by that. It returns the
// views whose streams have other endpoints. These streams are woken when the views are new
// too, so that clusters come first.
func (p *publication) advance() (moved map[*compiled.View]bool, err error) {
	start, next := time.Now(), p.next
	defer p.advancing()()
	p.waited = time.Since(start)
	before := p.encoder.Current.Load()
	err = p.recoverPanic("compile", func() error { p.compiler.Advance(next.Mesh); return nil })
	if err != nil {
		p.resume(before)
		return nil, err
	}
	p.encoder.Current.Store(next)
	if before == nil {
		p.fleet.PlaceDefault(next)
		return nil, nil
	}
	p.fleet.MoveToNext(before, next)
	return p.restream(before, next), nil
}

// andNew adds the new views to those whose endpoints changed, if there are any: the streams
// of a new view may have been waiting for the end of the publication with endpoints.
func (p *publication) andNew(moved map[*compiled.View]bool) map[*compiled.View]bool {
	if len(moved) > 0 {
		for _, entry := range p.changed {
			moved[p.fleet.ViewOf(entry.Key)] = true
		}
	}
	return moved
}

// makeRoomForPresent drops the past if the mesh has grown and needs its room. Proxies that
// may be at a view of the past are then as they are where nothing of the past is known.
func (p *Publisher) makeRoomForPresent() {
	if p.results.Short() {
		p.past.MakeRoom()
		p.fleet.ForgetPast()
	}
}

// resume goes on with a new compiler where the old one has failed half way.
func (p *Publisher) resume(before *compiled.Generation) {
	p.compiler = p.newCompiler()
	p.fleet.Unsettle()
	if before != nil {
		_ = p.recoverPanic("compile", func() error { p.compiler.Advance(before.Mesh); return nil })
	}
}

// renewAll compiles the views that the change concerns, and no others. The view that was
// last asked for comes first.
func (p *publication) renewAll() {
	p.fleet.Retire(p.opts.ProxyIdle)
	var all errgroup.Group
	all.SetLimit(p.processors())
	for _, entry := range p.fleet.Due(p.compiler.Concerned()) {
		all.Go(func() error {
			_ = p.recoverPanic("renew", func() error { p.renew(entry); return nil })
			return nil
		})
	}
	_ = all.Wait() // These functions never return an error.
}

// encodeJSON makes the JSON that proxies poll for of the views that have changed.
func (p *publication) encodeJSON() {
	for _, entry := range p.changed {
		if one := p.fleet.RepresentativeOf(entry); one != nil {
			_ = p.recoverPanic("encode", func() error { return entry.EncodeJSON(p.ctx, one.Proxy.IP) })
		}
	}
}

// processors returns how many views are compiled at a time. A publication with a large
// object leaves one processor to requests.
func (p *publication) processors() int {
	if p.large && p.opts.EnterLarge != nil {
		return max(1, xds.Processors()-1)
	}
	return xds.Processors()
}

func (p *publication) renew(entry *fleet.ViewEntry) {
	representative := p.fleet.RepresentativeOf(entry)
	if representative == nil {
		return
	}
	changed, err := p.renewView(p.ctx, p.next, entry, representative, p.rollout)
	p.fleet.Settled(entry, err == nil)
	if err != nil && p.ctx.Err() == nil {
		p.keep(representative, err)
	}
	if changed {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed = append(p.changed, entry)
	}
}

// goodFor is like good, for a proxy that comes from the view of another entry.
func (p *publication) goodFor(c *fleet.Client, old, next *compiled.View) error {
	err := wouldEmpty(p.next.Mesh, c.Proxy, old, next)
	if err != nil {
		p.keep(c, err)
	}
	return err
}

// keep records that a proxy, and all proxies with its view, keep what they have, and logs
// each reason once.
func (p *publication) keep(c *fleet.Client, reason error) {
	p.metrics.refusals.Inc()
	p.mu.Lock()
	known := p.kept[reason.Error()]
	p.kept[reason.Error()] = true
	p.mu.Unlock()
	if !known {
		p.opts.Log.Error("not published for some proxies: their last good configuration stays",
			"revision", p.next.Mesh.Revision, "node", c.Proxy.String(), "err", reason)
	}
}

// problems returns the problems that the publication has changed, by the part that has
// them.
func (p *publication) problems() map[string]diag.List {
	parts := map[string]diag.List{"mesh": p.next.Mesh.Problems}
	err := p.recoverPanic("compile", func() error { parts["compile"] = p.compiler.Problems(); return nil })
	if err != nil {
		p.keep(p.fleet.DefaultClient, err)
	}
	for _, entry := range p.changed {
		parts[entry.Key] = entry.Problems()
	}
	parts["kept"] = nil
	for reason := range p.kept {
		parts["kept"] = append(parts["kept"], feedback.NewRefusalProblem(diag.NotPublished, "some proxies keep an older configuration: "+reason))
	}
	return parts
}

// restream brings the endpoints of all streamed views from one generation to the next, and
// returns the views whose endpoints changed. The caller has locked Encoder.Advancing.
func (p *Publisher) restream(before, next *compiled.Generation) map[*compiled.View]bool {
	services := next.Mesh.ServicesSince(before.Mesh)
	if len(services) == 0 {
		return nil
	}
	changed := map[*compiled.View]bool{}
	for v := range p.fleet.ViewsInForce() {
		if v.Follow(services, next) {
			changed[v] = true
		}
	}
	return changed
}
