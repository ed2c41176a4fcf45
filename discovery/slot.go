package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/history"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// slot is where the views of one mesh.View.Key follow each other. All proxies of
// the key find theirs here, so that one store tells all of them, and none is
// touched.
type slot struct {
	key      string
	unknown  bool         // no workload of the registry is at the address
	stranger bool         // no proxy of a workload that the registry knows
	seen     atomic.Int64 // when a proxy last asked, as Publisher.age gives it

	askedV1 atomic.Int64 // when a proxy last did in v1, likewise; 0 for never

	// What some proxy of the slot speaks is spelled ahead.
	usesV1, usesV3, usesStreams, usesProxyless atomic.Bool

	view     atomic.Pointer[compiled.View] // the last good one, nil before the first
	kept     atomic.Int64                  // revision since which it is kept although there should be another, 0 for none
	compiled atomic.Pointer[diag.List]

	// Guarded by the fleet's lock.
	members group
	streams int     // of the members
	speaker *client // the member that the view is compiled for

	lately history.RecentClusters
	born   atomic.Int64 // serial of the generation of its first view

	mu     sync.Mutex    // held while a view is made, and for what follows
	failed error         // why there is no view of a generation
	at     int64         // its serial
	since  time.Duration // when it failed, as Publisher.age gives it
	closed bool
}

// errClosed: the slot is nobody's any more.
var errClosed = errors.New("the view is gone")

// first is the view of a slot that had none: made by whoever comes first, the
// others wait. A failure holds for a generation.
func (s *Publisher) first(g *compiled.Generation, sl *slot, mv mesh.View) (*compiled.View, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if v := sl.view.Load(); v != nil {
		return v, nil
	}
	switch {
	case sl.closed:
		return nil, errClosed
	case sl.failed != nil && sl.at == g.Serial && !sl.mayRetry(s.age()):
		return nil, sl.failed
	}
	config, problems, err := s.compileFor(context.Background(), g, sl, mv)
	if err != nil {
		return nil, err
	}
	v := compiled.NewView(g, sl.key, config)
	sl.born.Store(g.Serial)
	sl.compiled.Store(&problems)
	sl.view.Store(v)
	s.fleet.settled(sl, true)
	s.found(v)
	return v, nil
}

// retryAfter is when it is tried again to find room for a view.
const retryAfter = 30 * time.Second

// mayRetry reports whether there may be room by now for what there was none for.
func (sl *slot) mayRetry(now time.Duration) bool {
	return errors.Is(sl.failed, ErrOverBudget) && now-sl.since >= retryAfter
}

// retry has the next proxy of a slot try again for a view that there was no room for.
func (sl *slot) retry() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.failed = nil
}

// makeRoom drops the views without a connected proxy, and reports whether there
// were any.
func (s *Publisher) makeRoom() bool {
	before, _ := s.fleet.size()
	s.fleet.retire(idleUnderPressure)
	s.letGo()
	after, _ := s.fleet.size()
	return after < before
}

// idleUnderPressure is after how long without a poll a proxy counts as gone when
// there is no room for another one. An Envoy polls every few seconds.
const idleUnderPressure = time.Minute

// renew brings a slot to a generation, and reports whether anything is new. With
// an error it is what it was.
func (s *Publisher) renew(ctx context.Context, g *compiled.Generation, sl *slot, speaker *client, ro *feedback.Rollout) (changed bool, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.closed {
		return false, nil
	}
	defer func() { sl.keeps(err, g) }()
	config, problems, err := s.compileFor(ctx, g, sl, speaker.viewIn(g.Mesh))
	if err != nil {
		return false, err
	}
	before := sl.view.Load()
	if before == nil || before.Config != config {
		v := compiled.NewView(g, sl.key, config)
		if err = sl.encodeAhead(v, speaker.proxy.IP); err == nil && before != nil {
			err = wouldEmpty(g.Mesh, speaker.proxy, before, v)
		}
		if err != nil {
			sl.failed, sl.at = err, g.Serial
			return false, err
		}
		if before == nil {
			sl.born.Store(g.Serial)
		} else {
			sl.lately.Note(compiled.Withdrawn(before.Config, v.Config))
		}
		if before != nil {
			s.concerns(ro, sl, true)
		}
		sl.view.Store(v)
		if before != nil {
			before.Until.Store(v.Revision)
		}
		s.fleet.wakeMembers(sl)
		changed = true
	}
	old := sl.compiled.Swap(&problems)
	return changed || old == nil || !feedback.SameList(*old, problems), nil
}

// keeps notes since which revision the slot tells an older view than it should.
func (sl *slot) keeps(err error, g *compiled.Generation) {
	switch {
	case err == nil:
		sl.kept.Store(0)
	case sl.kept.Load() == 0:
		sl.kept.Store(g.Mesh.Revision)
	}
}

// compileFor compiles, and closes what must not be served as it is. The error
// is ErrOverBudget, that of ctx, or a mistake of ours.
func (s *Publisher) compileFor(ctx context.Context, g *compiled.Generation, sl *slot, mv mesh.View) (config *ir.Config, problems diag.List, err error) {
	start := time.Now()
	err = s.recoverPanic("compile", func() error {
		config, problems, err = s.compiler.ProxyWithin(ctx, mv)
		return err
	})
	s.metrics.compile.Observe(time.Since(start).Seconds())
	if err != nil {
		err = fmt.Errorf("compile for role %s in %s: %w", mv.Role, mv.Domain, err)
	}
	sl.failed, sl.at, sl.since = err, g.Serial, s.age()
	return config, problems, err
}

// encodeAhead encodes what proxies of the slot are known to ask for.
func (sl *slot) encodeAhead(v *compiled.View, ip string) error {
	if sl.usesV1.Load() {
		if _, err := v.EncodedV1(ip); err != nil {
			return err
		}
	}
	if sl.usesV3.Load() {
		if _, err := v.EncodedV3(ip); err != nil {
			return err
		}
	}
	if sl.usesStreams.Load() {
		if _, err := v.EncodedStreamed(ip); err != nil {
			return err
		}
	}
	if sl.usesProxyless.Load() {
		if _, err := v.EncodedProxyless(); err != nil {
			return err
		}
	}
	return nil
}

// problems that are known of the slot's view.
func (sl *slot) problems() diag.List {
	var all diag.List
	if compiled := sl.compiled.Load(); compiled != nil {
		all = *compiled
	}
	if v := sl.view.Load(); v != nil {
		all = append(all[:len(all):len(all)], v.Problems()...)
	}
	return all
}

// letGo closes the slots that the fleet has dropped.
func (s *Publisher) letGo() {
	for _, sl := range s.fleet.takeDropped() {
		sl.mu.Lock()
		sl.closed = true
		_ = s.recoverPanic("release", func() error {
			s.compiler.Release(sl.key, func() bool { return s.goesOn(sl.key) })
			return nil
		})
		sl.mu.Unlock()
	}
}

// goesOn reports whether another slot of the key goes on with what is there. Where
// none does, its problems are gone.
func (s *Publisher) goesOn(key string) bool {
	if s.fleet.has(key) {
		return true
	}
	s.newest.drop(key)
	return false
}

// found takes note of what was found while a view was spelled, if it is told.
func (s *Publisher) found(v *compiled.View) {
	if sl := s.fleet.isTold(v); sl != nil {
		s.newest.found(sl)
	}
}
