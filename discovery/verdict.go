package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
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
// it is of one moment.
type verdict struct {
	mu        sync.Mutex
	passed    chan struct{} // closed by the next verdict; nil when nobody waits
	revision  int64         // of the snapshot
	objects   []*schema.Object
	published *generation // the one in force; nil before the first
	refused   diag.List   // why the snapshot is not what is in force; nil when it is
}

// pass takes note of a snapshot. The published generation is nil for one that
// was refused.
func (v *verdict) pass(objs []*schema.Object, revision int64, published *generation, refused diag.List) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.revision, v.objects, v.refused = revision, objs, refused
	if published != nil {
		v.published = published
	}
	if v.passed != nil {
		close(v.passed)
		v.passed = nil
	}
}

// reached reports whether there is a verdict on a snapshot as new as that; later
// is closed by the next one.
func (v *verdict) reached(revision int64) (later <-chan struct{}, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.passed == nil {
		v.passed = make(chan struct{})
	}
	return v.passed, v.published != nil && v.revision >= revision
}

// holdsFor reports whether these are the very objects of the verdict.
func (v *verdict) holdsFor(objs []*schema.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.published != nil && slices.Equal(objs, v.objects)
}

// Report is everything that the published configuration could not honour. What
// one Envoy version cannot express is among it once a proxy has asked in that
// version. When the newest objects were refused as a whole, it is that of the
// older configuration in force, and a problem that says so.
func (s *Publisher) Report() Report {
	s.newest.mu.Lock()
	published, refused := s.newest.published, s.newest.refused
	s.newest.mu.Unlock()
	all := slices.Clone(refused)
	if published == nil {
		return Report{Problems: readable(all)}
	}
	report := Report{published.mesh.Revision, readable(append(all, published.problems()...))}
	s.counted.Store(&problemCount{published.serial, len(report.Problems), s.age()})
	return report
}

// Await waits until the configuration is compiled from objects of the revision
// or a later one, whether it could be published or was refused. The error is
// ctx's. A revision that the source tells without a change of objects is one
// whose configuration is there already.
func (s *Publisher) Await(ctx context.Context, revision int64) error {
	later, ok := s.newest.reached(revision)
	if ok {
		return nil
	}
	if objs, reached, synced := s.opts.Source.Snapshot(); synced && reached >= revision && s.newest.holdsFor(objs) {
		return nil
	}
	for !ok {
		select {
		case <-later:
		case <-ctx.Done():
			return ctx.Err()
		}
		later, ok = s.newest.reached(revision)
	}
	return nil
}

// problemCount is how many problems a generation had at some age of the server.
type problemCount struct {
	of  int64 // its serial
	n   int
	age time.Duration
}

// recount is how long a number of problems is good for in a generation: they
// grow when proxies come with another Envoy version, or refuse an answer.
const recount = 30 * time.Second

// problemCount is for metrics: whoever scrapes often does not have all problems
// gathered each time.
func (s *Publisher) problemCount() int {
	c, g := s.counted.Load(), s.current.Load()
	if c != nil && g != nil && c.of == g.serial && s.age()-c.age < recount {
		return c.n
	}
	return len(s.Report().Problems)
}
