// Package discovery keeps the answers for proxies ready. It follows the config
// objects, waits for a burst of changes to end, compiles once per view (see
// mesh.View) and publishes the encoded result in one step; requests only look
// up. It knows nothing of HTTP: package server asks it.
//
//	objects ─▶ hold-off ─▶ mesh.Snapshot ─▶ compile ─▶ ir ─▶ envoy/v1, v3 ─▶ check ─▶ publish
//	           run.go      build.go         view.go          v1.go, v3.go    set.go   run.go
//
// A generation is everything that follows from one snapshot. It is swapped in
// whole, so that a proxy never sees a mixture of two. What a proxy was once
// told is never taken back because of trouble of ours: a view that cannot be
// compiled, or that would be left with nothing by accident, keeps its last good
// answers and becomes a Problem. What is wrong with an object closes its own part
// of a view and no more.
package discovery

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Source is where the config objects come from; store/cache is one.
type Source interface {
	// Snapshot returns every object at one revision, in no particular
	// order; ok is false until the source has synced once. The slice is the
	// caller's, the objects are shared.
	Snapshot() (objs []*schema.Object, revision int64, ok bool)
	// Since returns what has changed between a revision that the source gave
	// and the present one, each object once; ok is false when that is not
	// known, and everything must be read by Snapshot.
	Since(revision int64) (changes []schema.Change, present int64, ok bool)
	// Changed is closed at the next change after the call.
	Changed() <-chan struct{}
	// Err is why the objects cannot be read at present; nil while they can,
	// or when that is not known.
	Err() error
}

// Failures that a server tells apart.
var (
	// ErrNotReady: there is no configuration for this proxy yet, because no
	// snapshot has been compiled, or because what was compiled is no good;
	// an Envoy must keep what it has and ask again.
	ErrNotReady = errors.New("no configuration compiled yet")
	// ErrBadNode: the node identity is malformed.
	ErrBadNode = errors.New("bad node")
	// ErrBadRoute: an RDS name that is neither a port nor http_proxy.
	ErrBadRoute = errors.New("bad route name")
	// ErrBadType: a v3 type URL that is not served.
	ErrBadType = errors.New("unknown resource type")
)

// Answer is an encoded answer and the content hash that is its version. Both
// are shared and must not be changed. The zero Answer is none.
type Answer struct {
	Version string
	Body    []byte
}

// Publisher holds the published configuration. Its methods are safe for
// concurrent use.
type Publisher struct {
	opts    Options
	metrics *metrics
	current atomic.Pointer[generation]
	past    past
	made    time.Time
	counted atomic.Pointer[problemCount]
	newest  verdict
}

// New makes a server that knows nothing until Run. It panics when metrics of
// the same names are registered already.
func New(opts Options) *Publisher {
	s := &Publisher{opts: opts.withDefaults(), made: time.Now()}
	s.metrics = newMetrics(s)
	return s
}

// Ready reports whether a first complete snapshot has been published.
func (s *Publisher) Ready() bool { return s.current.Load() != nil }

// published is the current generation; the error tells why there is none yet.
func (s *Publisher) published() (*generation, error) {
	if g := s.current.Load(); g != nil {
		return g, nil
	}
	if err := s.opts.Source.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil, ErrNotReady
}

// Revision is the store revision of the published snapshot, 0 before Ready.
func (s *Publisher) Revision() int64 {
	if g := s.current.Load(); g != nil {
		return g.mesh.Revision
	}
	return 0
}
