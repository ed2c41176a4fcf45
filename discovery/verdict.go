package discovery

import (
	"context"
	"slices"
	"sync"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/schema"
)

// Report lists the problems of the published configuration.
type Report struct {
	// Revision of the store that the configuration was compiled from; 0
	// before there is one.
	Revision int64
	// Problems are sorted by object and have no repetitions. A view has at most 100 for an
	// object, and there are 10,000 in all; the last ones say how many were left out.
	Problems diag.List
}

// verdict is the result of the newest snapshot: published or refused. All of it is from one
// moment: problems that a publication finds count when the publication is done.
type verdict struct {
	mu        sync.Mutex
	passed    chan struct{}        // closed by the next verdict; nil if nothing waits
	revision  int64                // of the snapshot
	published *compiled.Generation // the generation in force; nil before the first
	refused   diag.List            // why the snapshot is not in force; nil if it is
	// changes lead from what is published to what was refused.
	changes []schema.Change

	workloads  feedback.Workloads // of published
	problems   feedback.Tally
	publishing bool
	late       map[string]*fleet.ViewEntry // entries whose problems have changed since; nil for an entry that is gone
}

// expiryPart is the part of the problems that comes and goes with time alone.
const expiryPart = "expiry"

// expire records the certificates that have expired or will soon expire.
func (v *verdict) expire(problems diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems.Put(expiryPart, problems)
}

// begin holds back what is found until the next verdict.
func (v *verdict) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.publishing, v.late = true, map[string]*fleet.ViewEntry{}
}

// pass records a published snapshot, and the parts of it that have other problems than
// before.
func (v *verdict) pass(published *compiled.Generation, changed map[string]diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.workloads = v.workloads.Next(meshOf(v.published), published.Mesh)
	v.published = published
	for part, problems := range changed {
		v.problems.Put(part, problems)
	}
	v.changes = nil
	v.nextLocked(published.Mesh.Revision, nil)
}

// refuse records a refused snapshot.
func (v *verdict) refuse(n news, why diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes = n.changes
	v.nextLocked(n.revision, why)
}

func (v *verdict) nextLocked(revision int64, refused diag.List) {
	v.revision, v.refused = revision, refused
	v.publishing = false
	for key, entry := range v.late {
		v.putLocked(key, entry)
	}
	v.late = nil
	if v.passed != nil {
		close(v.passed)
		v.passed = nil
	}
}

// found records problems of an entry's view that were found after the view was made.
func (v *verdict) found(entry *fleet.ViewEntry) { v.note(entry.Key, entry) }

// drop forgets the problems of an entry.
func (v *verdict) drop(key string) { v.note(key, nil) }

func (v *verdict) note(key string, entry *fleet.ViewEntry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.publishing {
		v.late[key] = entry
		return
	}
	v.putLocked(key, entry)
}

func (v *verdict) putLocked(key string, entry *fleet.ViewEntry) {
	if entry == nil {
		v.problems.Put(key, nil)
		return
	}
	v.problems.Put(key, entry.Problems())
}

// reached reports whether there is a verdict on a snapshot of the revision or a later one.
// The next verdict closes later.
func (v *verdict) reached(revision int64) (later <-chan struct{}, newest int64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.passed == nil {
		v.passed = make(chan struct{})
	}
	return v.passed, v.revision, v.published != nil && v.revision >= revision
}

// inForce returns the published generation, or nil for none.
func (v *verdict) inForce() *compiled.Generation {
	published, _ := v.judged()
	return published
}

// judged returns the newest snapshot of which there is a verdict, as the published
// generation (nil for none) and the changes since.
func (v *verdict) judged() (*compiled.Generation, []schema.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.published, v.changes
}

// known has the published configuration and its problems, except those that proxies report.
func (v *verdict) known() (*compiled.Generation, feedback.Workloads, diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.published, v.workloads, v.problems.List()
}

// Report returns all problems of the published configuration. It includes problems of an
// API version, as soon as a proxy has used that version. If the newest objects were refused
// as a whole, the report is about the older configuration in force, with a problem that
// says so.
func (p *Publisher) Report() Report {
	p.newest.mu.Lock()
	published, refused := p.newest.published, p.newest.refused
	all := p.newest.problems.List()
	p.newest.mu.Unlock()
	more := slices.Concat(refused, p.fleet.Refusals(), p.opts.LeftOut())
	var report Report
	if published != nil {
		report.Revision = published.Mesh.Revision
	}
	report.Problems = feedback.Readable(all, more)
	return report
}

// With adds problems that other replicas report.
func (r Report) With(others diag.List) Report {
	known := map[string]bool{}
	for _, p := range r.Problems {
		known[p.String()] = true
	}
	var more diag.List
	for _, p := range others {
		if !known[p.String()] {
			known[p.String()] = true
			more = append(more, p)
		}
	}
	r.Problems = feedback.Readable(r.Problems, more)
	return r
}

// problemCount returns the number of problems in a report, without making one.
func (p *Publisher) problemCount() int {
	refusing := min(p.fleet.RefusingCount(), fleet.MaxRefusals+1) + len(p.opts.LeftOut())
	p.newest.mu.Lock()
	defer p.newest.mu.Unlock()
	return min(p.newest.problems.Len()+len(p.newest.refused)+refusing, feedback.MaxProblems+1)
}

// Await waits until configuration of the revision or a later one is compiled, whether it
// was published or refused. The error is ctx's. If the revision has no change of objects,
// it counts as compiled together with the one before.
func (p *Publisher) Await(ctx context.Context, revision int64) error {
	later, newest, ok := p.newest.reached(revision)
	if ok || p.nothingNew(newest, revision) {
		return nil
	}
	for !ok {
		select {
		case <-later:
		case <-ctx.Done():
			return ctx.Err()
		}
		later, newest, ok = p.newest.reached(revision)
		ok = ok || p.nothingNew(newest, revision)
	}
	return nil
}

// nothingNew reports whether no object has changed between the newest verdict and a
// revision that the source has reached.
func (p *Publisher) nothingNew(newest, revision int64) bool {
	published, judged := p.newest.judged()
	if published == nil {
		return false
	}
	if changes, present, known := p.opts.Source.Since(newest); known {
		return present >= revision && len(changes) == 0
	}
	objs, present, synced := p.opts.Source.Snapshot()
	return synced && present >= revision && sameChanges(changesTo(published.Mesh, objs), judged)
}

// sameChanges reports whether two lists of changes, with each object at most once, lead to
// the same objects.
func sameChanges(a, b []schema.Change) bool {
	after := map[schema.Key]*schema.Object{}
	for _, c := range b {
		after[c.Key()] = c.After
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c schema.Change) bool {
		other, known := after[c.Key()]
		return !known || (c.After == nil) != (other == nil) || other != nil && !sameVersion(c.After, other)
	})
}
