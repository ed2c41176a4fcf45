package discovery

import (
	"context"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/schema"
)

// Run follows the source until ctx ends, and returns ctx's error then. What is
// there at the start is published even when ctx has ended already. It must not
// run twice at a time.
func (s *Publisher) Run(ctx context.Context) error {
	sweep := time.NewTicker(s.opts.ProxyIdle)
	defer sweep.Stop()
	var busy, since time.Time // when the last publication ended, when its changes were told
	for compiling := context.WithoutCancel(ctx); ; compiling = ctx {
		// Asked for before the snapshot, so that no change falls between.
		changed := timed(ctx, s.opts.Source.Changed(), s.opts.Files.Changed())
		if s.follow(compiling, since) {
			busy = time.Now()
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-sweep.C:
				s.fleet.Sweep()
				s.letGo()
				s.checks.rest()
			case since = <-changed:
				waiting = false
			}
		}
		s.holdOff(ctx, busy)
	}
}

// timed tells when one of two channels was closed, also to who is busy then.
func timed(ctx context.Context, closed, other <-chan struct{}) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		select {
		case <-closed:
			at <- time.Now()
		case <-other:
			at <- time.Now()
		case <-ctx.Done():
		}
	}()
	return at
}

// holdOff returns at once when the last publication was long ago. Else changes
// follow each other closely: it waits for the end of the hold-off, and if there
// are more until then, for the end of the burst.
func (s *Publisher) holdOff(ctx context.Context, last time.Time) {
	if !s.Ready() {
		return
	}
	end, ceiling := last.Add(s.opts.HoldOff), time.Now().Add(s.opts.MaxHoldOff)
	for {
		wait := min(time.Until(end), time.Until(ceiling))
		if wait <= 0 {
			return
		}
		changed, files := s.opts.Source.Changed(), s.opts.Files.Changed()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-changed:
			end = time.Now().Add(s.opts.HoldOff)
		case <-files:
			end = time.Now().Add(s.opts.HoldOff)
		}
	}
}

// follow publishes what the source holds now, of which the first was told at since,
// and reports whether that is anything new.
func (s *Publisher) follow(ctx context.Context, since time.Time) bool {
	start := time.Now()
	before := s.encoder.Current.Load()
	var n news
	ok := false
	err := s.recoverPanic("news", func() error { ok = s.news(meshOf(before), &n); return nil })
	if err == nil && !ok {
		return false
	}
	var p *publication
	if err == nil {
		p, err = s.bring(ctx, before, n, since)
	}
	if err != nil {
		s.refuse(n, err)
		return true
	}
	slots, clients := s.fleet.Size()
	took := time.Since(start)
	s.metrics.publish.Observe(took.Seconds())
	if s.opts.SpentOnLarge != nil && anyLarge(n.changes) {
		s.opts.SpentOnLarge(took)
	}
	s.opts.Log.InfoContext(ctx, "published", "revision", n.revision, "services", len(p.next.Mesh.Services),
		"views", slots, "changed", len(p.changed), "proxies", clients, "took", took)
	return true
}

// anyLarge reports whether there is an object among changes that takes long to compile.
func anyLarge(changes []schema.Change) bool {
	return slices.ContainsFunc(changes, func(c schema.Change) bool {
		return large(c.Before) || large(c.After)
	})
}

func large(o *schema.Object) bool { return o != nil && o.Large() }

// bring publishes news.
func (s *Publisher) bring(ctx context.Context, before *compiled.Generation, n news, since time.Time) (*publication, error) {
	snapshot, err := s.snapshot(meshOf(before), n)
	if err != nil {
		return nil, err
	}
	if before == nil {
		s.past.Begin(snapshot)
	}
	var ro *feedback.Rollout
	if since = s.acks.until(n.revision, since); before != nil && !since.IsZero() {
		s.convergence.Dismiss()
		ro = s.convergence.Begin(n.revision, since)
	}
	s.newest.begin()
	p, err := s.publish(ctx, compiled.NewGeneration(s.encoder, snapshot, before), ro)
	if err != nil {
		return nil, err
	}
	if before != nil {
		s.past.End(before, p.next)
	}
	s.newest.pass(p.next, p.problems())
	s.metrics.generations.Inc()
	return p, nil
}

// refuse keeps everything that was last published.
func (s *Publisher) refuse(n news, err error) {
	s.opts.Log.Error("not published: the last good configuration stays", "revision", n.revision, "err", err)
	s.metrics.refusals.Inc()
	s.newest.refuse(n,
		diag.List{feedback.NewRefusalProblem(diag.NotPublished, "nothing of this state of the configuration is in force, all proxies keep what they had: "+err.Error())})
}
