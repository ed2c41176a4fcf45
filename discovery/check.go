package discovery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Written has the changes of a request. With DryRun it has the changes that the request
// would make. For a deleted object it has only Before, otherwise the object after the
// change.
type Written struct {
	Changes []schema.Change
	DryRun  bool
}

// Limits for all checks of written objects together. A write that exceeds them is answered
// without a check.
const (
	maxWaitingChecks = 32
	checkShare       = 10 // checks may take one part in so many of a processor's time
	checkSavings     = time.Second
	maxAhead         = 4096 // written objects that are remembered until the source has them
)

// checker checks objects as they are written. It has a compiler of its own, which is ahead
// of what is published and has no views except those of checkv1.go.
type checker struct {
	*Publisher
	admitted  chan struct{} // a token for each check that waits or runs
	running   chan struct{}
	allowance allowance
	long      atomic.Bool   // a check of large objects runs, and no write waits for it
	longBegan chan struct{} // receives once for each write that waits to start when such a check begins
	done      *prometheus.CounterVec

	// The running check owns the following fields.
	compiler compiler // nil while there are no writes
	at       *mesh.Snapshot
	revision int64 // of the source, that the compiler is at
	// laid has the objects of the source that written ones replace in the compiler, nil for
	// objects that the source lacks. They are put back before the next check replaces
	// others.
	laid   map[schema.Key]*schema.Object
	dryRun bool // some of those are replaced only for a dry run
	// ahead has writes that have not reached the source yet, by revision.
	ahead []schema.Change
	// lost has what proxies that use v1 lose, and views the keys of their views.
	lost  map[fleet.KindV1]*lossesV1
	views map[string]bool
	used  bool      // since rest last ran
	ready time.Time // when the compiler had all objects of the source
}

func newChecker(p *Publisher) *checker {
	return &checker{
		Publisher: p, admitted: make(chan struct{}, maxWaitingChecks), running: make(chan struct{}, 1), longBegan: make(chan struct{}),
		// One write may take as long as it may wait.
		allowance: allowance{share: checkShare, most: max(checkSavings, p.opts.CheckPatience)},
	}
}

// The outcomes of checks in metrics.
const (
	checked     = "checked"
	checkBusy   = "busy"
	checkFailed = "failed"
)

// Check compiles the written objects together with all others of the source and returns
// their problems. It returns false if there is no result: there are too many checks, this
// one takes too long or hits a bug, or there are no objects yet. It always returns soon,
// and no publication waits for it.
func (p *Publisher) Check(ctx context.Context, w Written) (diag.List, bool) {
	problems, outcome := p.checks.check(ctx, w)
	p.checks.done.WithLabelValues(outcome).Inc()
	return problems, outcome == checked
}

func (c *checker) check(ctx context.Context, w Written) (diag.List, string) {
	if c.long.Load() || !c.allowance.any() {
		return nil, checkBusy
	}
	select {
	case c.admitted <- struct{}{}:
	default:
		return nil, checkBusy
	}
	patience := time.NewTimer(c.opts.CheckPatience)
	defer patience.Stop()
	if !c.awaitStart(ctx, patience.C) {
		<-c.admitted
		return nil, checkBusy
	}
	type result struct {
		problems diag.List
		outcome  string
	}
	found := make(chan result, 2)
	go func() {
		defer func() { <-c.running; <-c.admitted }()
		problems, outcome := c.look(w, func() { found <- result{nil, checkBusy} })
		found <- result{problems, outcome}
	}()
	select {
	case r := <-found:
		return r.problems, r.outcome
	case <-patience.C: // The check is made all the same, for the benefit of later ones.
	case <-ctx.Done():
	}
	return nil, checkBusy
}

// awaitStart returns false if the check cannot start in time, or a check of large objects
// begins before.
func (c *checker) awaitStart(ctx context.Context, late <-chan time.Time) bool {
	select {
	case c.running <- struct{}{}:
		return true
	case <-c.longBegan:
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// look checks while no other check runs. To start the compiler takes none of the allowance,
// unless the check fails. No write waits while look checks large objects of others: it
// calls busy first.
func (c *checker) look(w Written, busy func()) (problems diag.List, outcome string) {
	since, known := time.Now(), false
	defer c.long.Store(false)
	c.allowance.begin()
	c.used = true
	err := c.recoverPanic("check", func() error {
		if known = c.follow(w, busy); known {
			problems = c.problemsOf(w)
		}
		return nil
	})
	switch {
	case err != nil:
		c.forget()
	case known && c.ready.After(since):
		since = c.ready
	}
	c.allowance.spend(since)
	if err != nil || !known {
		return nil, checkFailed
	}
	return problems, checked
}

// problemsOf returns the problems of the written objects that exist.
func (c *checker) problemsOf(w Written) diag.List {
	objects := map[diag.Ref]bool{}
	for _, change := range w.Changes {
		if change.After != nil {
			objects[change.After.Key().Ref()] = true
		}
	}
	ofOthers := func(p diag.Problem) bool { return !objects[p.Object] }
	ofMesh := slices.DeleteFunc(slices.Clone(c.at.Problems), ofOthers)
	return slices.Concat(ofMesh, c.compiler.ProblemsOf(objects), c.lostInV1(objects))
}

// follow brings the compiler to the state of the source, with the written objects laid over
// it, because the source may not have them yet. It returns false while the source has
// nothing.
func (c *checker) follow(w Written, busy func()) bool {
	if c.compiler == nil && !c.begin() {
		return false
	}
	news, present, known := c.opts.Source.Since(c.revision)
	if !known {
		if !c.begin() {
			return false
		}
		news, present = nil, c.revision
	}
	is := maps.Clone(c.laid)
	for _, n := range news {
		key, after := n.Key(), n.After
		if was := c.object(key); after != nil && was != nil && !c.dryRun && sameVersion(was, after) {
			after = was // This replica wrote it.
		} else if large(was) || large(after) {
			c.beginLong()
		}
		is[key] = after
	}
	switch {
	case anyLarge(w.Changes):
		c.beginLong()
	case c.long.Load():
		busy()
	}
	c.laid = map[schema.Key]*schema.Object{}
	for _, change := range c.toLay(w, present) {
		key := change.Key()
		if _, twice := c.laid[key]; !twice {
			was, other := is[key]
			if !other {
				was = c.object(key)
			}
			c.laid[key] = was
		}
		is[key] = change.After
	}
	c.next(present, is)
	c.dryRun = w.DryRun
	return true
}

// beginLong ends the wait of all writes that wait to start, and has later ones not
// begin to wait until the check ends.
func (c *checker) beginLong() {
	c.long.Store(true)
	for {
		select {
		case c.longBegan <- struct{}{}:
		default:
			return
		}
	}
}

// toLay returns the written objects that the source does not have, and last those of the
// dry run.
func (c *checker) toLay(w Written, present int64) []schema.Change {
	c.ahead = slices.DeleteFunc(c.ahead, func(one schema.Change) bool { return revisionOf(one) <= present })
	if w.DryRun {
		return slices.Concat(c.ahead, w.Changes)
	}
	all := slices.Concat(c.ahead, w.Changes)
	slices.SortStableFunc(all, func(a, b schema.Change) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	c.ahead = all[max(0, len(all)-maxAhead):]
	return all
}

// revisionOf returns the revision at which an object was written or deleted.
func revisionOf(c schema.Change) int64 { return cmp.Or(c.After, c.Before).Revision() }

// begin starts a compiler with all objects of the source.
func (c *checker) begin() bool {
	c.forget()
	objs, revision, synced := c.opts.Source.Snapshot()
	if !synced {
		return false
	}
	c.compiler, c.revision, c.laid = c.newBeside(), revision, map[schema.Key]*schema.Object{}
	c.at = mesh.NewSnapshot(revision, c.opts.Settings, objs).WithFiles(c.opts.Files.Secrets()).WithKeys(c.opts.Keys.Keys())
	c.compiler.Advance(c.at)
	c.compiler.ProblemsOf(nil)
	c.lostInV1(nil)
	c.ready = time.Now()
	return true
}

func (c *checker) forget() {
	if c.compiler != nil {
		c.compiler.Close()
	}
	c.compiler, c.at, c.laid, c.ahead, c.dryRun = nil, nil, nil, nil, false
	c.lost, c.views = map[fleet.KindV1]*lossesV1{}, nil
}

// next puts objects into their places in the compiler, nil for none.
func (c *checker) next(revision int64, is map[schema.Key]*schema.Object) {
	var changes []schema.Change
	for key, after := range is {
		if before := c.object(key); before != after {
			changes = append(changes, schema.Change{Before: before, After: after})
		}
	}
	c.revision = revision
	c.at = c.at.Next(revision, changes).WithFiles(c.opts.Files.Secrets()).WithKeys(c.opts.Keys.Keys())
	c.compiler.Advance(c.at)
}

// object returns nil if there is no object.
func (c *checker) object(key schema.Key) *schema.Object { return c.at.Object(key) }

// rest drops everything that only checks need if there was no write since it last ran.
func (c *checker) rest() {
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	default:
		return
	}
	if !c.used {
		c.forget()
	}
	c.used = false
}
