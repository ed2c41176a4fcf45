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

// Written is what a request has written, or with DryRun would write: objects as
// they are after it, or Before alone for those that it deleted.
type Written struct {
	Changes []schema.Change
	DryRun  bool
}

// Bounds of what all checks of written objects together may take. A write that finds no
// room is answered without its check.
const (
	maxWaitingChecks = 32
	checkShare       = 10 // of a processor's time, checks take one part in so many
	checkSavings     = time.Second
	maxAhead         = 4096 // written objects that are remembered until the source has them
)

// checker looks at objects as they are written: with a compiler that is ahead of what
// is published, which it does not touch, and has no views but those of checkv1.go.
type checker struct {
	*Publisher
	line      chan struct{} // a place for each check that waits or runs
	turn      chan struct{}
	allowance allowance
	long      atomic.Bool // a look at large objects goes on, for which no one waits
	done      *prometheus.CounterVec

	// The check that runs owns the fields that follow.
	compiler compiler // nil while there are no writes
	at       *mesh.Snapshot
	revision int64 // of the source
	// laid are the objects that the source had in the place of those that were
	// written, nil for none; they are back in their places before the next are laid.
	laid   map[schema.Key]*schema.Object
	dryRun bool // of some of those
	// ahead are writes that the source has not heard of yet, by revision.
	ahead []schema.Change
	// lost is what proxies lose that ask in v1, and views are the keys of theirs.
	lost  map[fleet.KindV1]*lossesV1
	views map[string]bool
	used  bool      // since the last rest
	ready time.Time // when the compiler had all of the source
}

func newChecker(p *Publisher) *checker {
	return &checker{
		Publisher: p, line: make(chan struct{}, maxWaitingChecks), turn: make(chan struct{}, 1),
		// What one write may wait for, it may also take.
		allowance: allowance{share: checkShare, most: max(checkSavings, p.opts.CheckPatience)},
	}
}

// Outcomes of a check, by which they are counted.
const (
	checked     = "checked"
	checkBusy   = "busy"
	checkFailed = "failed"
)

// Check is what is wrong with the written objects among all others that the source
// has, and false where that was not found out: when there are too many checks, or
// this one takes too long, is a mistake of ours, or there are no objects yet. It
// returns soon in any case, and nothing that is published waits for it.
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
	case c.line <- struct{}{}:
	default:
		return nil, checkBusy
	}
	patience := time.NewTimer(c.opts.CheckPatience)
	defer patience.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-patience.C:
		<-c.line
		return nil, checkBusy
	case <-ctx.Done():
		<-c.line
		return nil, checkBusy
	}
	type result struct {
		problems diag.List
		outcome  string
	}
	found := make(chan result, 2)
	go func() {
		defer func() { <-c.turn; <-c.line }()
		problems, outcome := c.look(w, func() { found <- result{nil, checkBusy} })
		found <- result{problems, outcome}
	}()
	select {
	case r := <-found:
		return r.problems, r.outcome
	case <-patience.C: // It is made all the same, and the next ones go by it.
	case <-ctx.Done():
	}
	return nil, checkBusy
}

// look has the turn. To begin takes none of the allowance, unless it was for nothing.
// Nobody waits while it looks at large objects of others: it calls busy first.
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

// problemsOf are those of what was written and is there.
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

// follow brings the compiler to what the source has, with what was written laid over
// it: that the source may not have heard of yet. It is false while the source has
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
			after = was // It was written here.
		} else if large(was) || large(after) {
			c.long.Store(true)
		}
		is[key] = after
	}
	switch {
	case anyLarge(w.Changes):
		c.long.Store(true)
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

// toLay is what was written and the source does not have, and last what is tried.
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

// revisionOf is the one at which an object was written or deleted.
func revisionOf(c schema.Change) int64 { return cmp.Or(c.After, c.Before).Revision() }

// begin is with all that the source has.
func (c *checker) begin() bool {
	c.forget()
	objs, revision, synced := c.opts.Source.Snapshot()
	if !synced {
		return false
	}
	c.compiler, c.revision, c.laid = c.newBeside(), revision, map[schema.Key]*schema.Object{}
	c.at = mesh.NewSnapshot(revision, c.opts.Settings, objs).WithFiles(c.opts.Files.Secrets())
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

// next has these objects in their places, nil for none.
func (c *checker) next(revision int64, is map[schema.Key]*schema.Object) {
	var changes []schema.Change
	for key, after := range is {
		if before := c.object(key); before != after {
			changes = append(changes, schema.Change{Before: before, After: after})
		}
	}
	c.revision = revision
	c.at = c.at.Next(revision, changes).WithFiles(c.opts.Files.Secrets())
	c.compiler.Advance(c.at)
}

// object is nil where there is none.
func (c *checker) object(key schema.Key) *schema.Object { return c.at.Object(key) }

// rest drops what only checks need, if there was no write since the last time.
func (c *checker) rest() {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	default:
		return
	}
	if !c.used {
		c.forget()
	}
	c.used = false
}
