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

// Report is what the published configuration could not honour.
type Report struct {
	// Revision of the store that the configuration was compiled from; 0
	// before there is one.
	Revision int64
	// Problems sorted by object, without repetitions: of an object no more than
	// 100 of each view, 10,000 in all, and how many were left out.
	Problems diag.List
}

// verdict is what became of the newest snapshot: published, or refused. All of
// it is of one moment: what a publication finds counts when all of it is done.
type verdict struct {
	mu        sync.Mutex
	passed    chan struct{}        // closed by the next verdict; nil if nothing waits
	revision  int64                // of the snapshot
	published *compiled.Generation // the one in force; nil before the first
	refused   diag.List            // why the snapshot is not what is in force; nil when it is
	// changes lead from what is published to what was refused.
	changes []schema.Change

	workloads  feedback.Workloads // of published
	problems   feedback.Tally
	publishing bool
	late       map[string]*fleet.ViewEntry // of which something else was found meanwhile; nil for an entry that has gone
}

// expiryPart is the part of the problems that comes and goes with time alone.
const expiryPart = "expiry"

// expire takes note of the certificates that have expired by now, or soon will.
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

// pass takes note of a snapshot that was published, and of the parts of it that
// have other problems than before.
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

// refuse takes note of one that was not.
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

// found takes note of what was found of an entry's view later than it was made.
func (v *verdict) found(entry *fleet.ViewEntry) { v.note(entry.Key, entry) }

// drop forgets what was found of an entry.
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

// reached reports whether there is a verdict on a snapshot as new as that; later
// is closed by the next one.
func (v *verdict) reached(revision int64) (later <-chan struct{}, newest int64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.passed == nil {
		v.passed = make(chan struct{})
	}
	return v.passed, v.revision, v.published != nil && v.revision >= revision
}

// inForce is the generation that is published, nil for none.
func (v *verdict) inForce() *compiled.Generation {
	published, _ := v.judged()
	return published
}

// judged is the newest snapshot as the generation that is published, nil for
// none, and what has changed since.
func (v *verdict) judged() (*compiled.Generation, []schema.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.published, v.changes
}

// known is what is published, and all problems of it, but for what proxies refuse.
func (v *verdict) known() (*compiled.Generation, feedback.Workloads, diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.published, v.workloads, v.problems.List()
}

// Report is everything that the published configuration could not honour. What
// one Envoy version cannot express is among it once a proxy has asked in that
// version. When the newest objects were refused as a whole, it is that of the
// older configuration in force, and a problem that says so.
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

// With has problems that other replicas report beside its own.
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

// problemCount is how many problems a report has, without making one.
func (p *Publisher) problemCount() int {
	refusing := min(p.fleet.RefusingCount(), fleet.MaxRefusals+1) + len(p.opts.LeftOut())
	p.newest.mu.Lock()
	defer p.newest.mu.Unlock()
	return min(p.newest.problems.Len()+len(p.newest.refused)+refusing, feedback.MaxProblems+1)
}

// Await waits until the configuration is compiled from objects of the revision
// or a later one, whether it could be published or was refused. The error is
// ctx's. A revision of the source without a change of objects is one
// whose configuration is there already.
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
		later, _, ok = p.newest.reached(revision)
	}
	return nil
}

// nothingNew reports whether no object has changed from the newest verdict to a
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

// sameChanges reports whether changes, of an object one at most, lead to the same.
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
