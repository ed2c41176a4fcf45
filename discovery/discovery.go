// Package discovery keeps the answers for proxies ready. It follows the config
// objects and brings every view (see mesh.View) of a known proxy from one
// snapshot to the next; requests only look up. It knows nothing of HTTP: package
// server asks it.
//
//	changes ─▶ hold-off ─▶ mesh.Snapshot ─▶ compile ─▶ ir ─▶ envoy/v1, v3 ─▶ check ─▶ encoded parts ─▶ view
//	           run.go      build.go         slot.go          v1parts.go, v3parts.go    set.go           publish.go
//
// A slot is where all proxies with equal views find theirs. A view is swapped in
// whole, so that a proxy never sees a mixture of two, and only where it is another
// one: neither other views nor their proxies are touched (fleet.go). What a proxy
// was once told is never taken back because of trouble of ours: a view that cannot
// be compiled, or that would be left with nothing by accident, keeps its last good
// answers and becomes a Problem. What is wrong with an object closes its own part
// of a view and no more.
package discovery

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/history"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
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

// Files are secrets beside the objects of the Source. A change of them makes another
// snapshot at the same revision.
type Files interface {
	// Secrets are what is in them now.
	Secrets() *mesh.FileSecrets
	// Changed is closed at the next change after the call.
	Changed() <-chan struct{}
}

type noFiles struct{}

func (noFiles) Secrets() *mesh.FileSecrets { return nil }
func (noFiles) Changed() <-chan struct{}   { return nil }

// Failures that a server tells apart.
var (
	// ErrNotReady: there is no configuration for this proxy yet, because no
	// snapshot has been compiled, or because what was compiled is no good;
	// an Envoy must keep what it has and ask again.
	ErrNotReady = errors.New("no configuration compiled yet")
	// ErrOverBudget: there is no room for the configuration of this proxy, or it
	// takes too much by itself; an Envoy must keep what it has.
	ErrOverBudget = compile.ErrOverBudget
	// ErrBadNode: the node identity is malformed.
	ErrBadNode = errors.New("bad node")
	// ErrBadRoute: an RDS name that is neither a port nor http_proxy.
	ErrBadRoute = errors.New("bad route name")
	// ErrBadType: a v3 type URL that is not served.
	ErrBadType = errors.New("unknown resource type")
)

// Publisher holds the published configuration. Its methods are safe for
// concurrent use.
type Publisher struct {
	opts    Options
	metrics *metrics
	made    time.Time
	fleet   *fleet.Fleet
	past    *history.ViewHistory
	newest  verdict
	// convergence is of changes on their way to proxies.
	convergence feedback.Convergence
	acks        acks
	caughtUp    caughtUp

	// encoder has the current generation. Its lock is held, with others, by who makes a
	// newcomer's view, and alone by what takes the compiler, the current generation and
	// the fleet from one snapshot to the next: all three are of the same.
	encoder *compiled.Encoder
	streams *stream.Shared

	previewing  sync.Mutex // of who has a preview made
	checks      *checker
	newCompiler func() compiler
	results     *compile.Quota // of all compilers
	compiler    compiler
}

// New makes a server that knows nothing until Run. It panics when metrics of
// the same names are registered already.
func New(opts Options) *Publisher {
	s := &Publisher{opts: opts.withDefaults(), made: time.Now()}
	s.results = compile.NewQuota(s.opts.MaxResults)
	s.newCompiler = func() compiler { return compile.NewCompilerWithin(s.results) }
	s.compiler = s.newCompiler()
	s.fleet = fleet.New(fleet.Options{
		MaxProxies: s.opts.MaxProxies, MaxViews: s.opts.MaxViews, ProxyIdle: s.opts.ProxyIdle,
		Domain: s.opts.Settings.Domain, Began: s.made,
	}, s.age)
	s.encoder = compiled.NewEncoder(s.opts.MaxProxies, s.opts.Log, s.recoverPanic, s.found)
	s.past = history.New(history.Options{
		Since:    func(revision int64) ([]schema.Change, int64, bool) { return s.opts.Source.Since(revision) },
		Settings: s.opts.PastSettings, MaxViews: s.opts.MaxViews, Encoder: s.encoder,
		NewCompiler: func() history.Compiler { return s.newCompiler() },
	})
	s.streams = &stream.Shared{Encoder: s.encoder, Contents: xds.NewContents(), Convergence: &s.convergence, Revision: s.Revision}
	s.checks = newChecker(s)
	s.metrics = newMetrics(s)
	return s
}

// Ready reports whether a first complete snapshot has been published.
func (p *Publisher) Ready() bool { return p.newest.inForce() != nil }

// published is the current generation, from the moment on in which it begins to
// be published; the error tells why there is none yet.
func (p *Publisher) published() (*compiled.Generation, error) {
	if g := p.encoder.Current.Load(); g != nil {
		return g, nil
	}
	if err := p.opts.Source.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil, ErrNotReady
}

// Revision is the store revision of the published snapshot, 0 before Ready.
func (p *Publisher) Revision() int64 {
	if g := p.newest.inForce(); g != nil {
		return g.Mesh.Revision
	}
	return 0
}
