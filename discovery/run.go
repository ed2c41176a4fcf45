package discovery

import (
	"context"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Run follows the source until ctx ends, and returns ctx's error then. What is
// there at the start is published even when ctx has ended already. It must not
// run twice at a time.
func (s *Publisher) Run(ctx context.Context) error {
	for {
		// Asked for before the snapshot, so that no change falls between.
		changed := s.opts.Source.Changed()
		s.follow(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.opts.ProxyIdle):
			if g := s.current.Load(); g != nil {
				g.sweep()
			}
			continue
		case <-changed:
		}
		if s.Ready() {
			s.settle(ctx)
		}
	}
}

// settle waits for the end of a burst of changes.
func (s *Publisher) settle(ctx context.Context) {
	ceiling := time.After(s.opts.MaxHoldOff)
	for {
		changed := s.opts.Source.Changed()
		select {
		case <-ctx.Done():
			return
		case <-ceiling:
			return
		case <-time.After(s.opts.HoldOff):
			return
		case <-changed:
		}
	}
}

// follow publishes what the source holds now, unless it is published already.
func (s *Publisher) follow(ctx context.Context) {
	objs, revision, ok := s.opts.Source.Snapshot()
	before := s.current.Load()
	if !ok || before != nil && before.mesh.Revision == revision {
		return
	}
	start := time.Now()
	next, err := s.build(objs, revision, before)
	if err != nil {
		s.refuse(objs, revision, err)
		return
	}
	s.publish(objs, next)
	took := time.Since(start)
	s.metrics.publish.Observe(took.Seconds())
	s.opts.Log.InfoContext(ctx, "published", "revision", revision,
		"services", len(next.mesh.Services), "views", next.viewCount(), "proxies", next.proxyCount(), "took", took)
}

func (s *Publisher) publish(objs []*schema.Object, g *generation) {
	if s.current.Load() == nil {
		s.past.begin(s, g.mesh, objs)
	}
	s.current.Store(g)
	s.newest.pass(objs, g.mesh.Revision, g, nil)
	s.metrics.generations.Inc()
}

// refuse keeps the whole last generation.
func (s *Publisher) refuse(objs []*schema.Object, revision int64, err error) {
	s.opts.Log.Error("not published: the last good configuration stays", "revision", revision, "err", err)
	s.metrics.refusals.Inc()
	s.newest.pass(objs, revision, nil,
		diag.List{refusal("nothing of this state of the configuration is in force, all proxies keep what they had: " + err.Error())})
}
