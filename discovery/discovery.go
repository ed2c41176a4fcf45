// Package discovery keeps the answers for proxies ready. A Publisher follows the config
// objects and brings every view (see mesh.View) of a known proxy from one snapshot to
// the next; requests only look up. It knows nothing of HTTP: package server calls it.
//
//	changes ─▶ hold-off ─▶ mesh.Snapshot ─▶ compile ─▶ ir ─▶ encoded parts ─▶ view ─▶ entry
//	           run.go      build.go         compileview.go   xds              compiled  fleet
//
// All proxies with equal views find theirs in one entry. A view is swapped in whole, so
// that a proxy never sees a mixture of two, and only if it differs: other views and their
// proxies are not touched. Trouble of ours never takes anything away from a proxy: a view
// that cannot be compiled, or that would be left with nothing by accident, keeps its last
// good answers and becomes a Problem. A fault of an object closes only its own part
// of a view.
//
// The rooms, from the ground up; none knows the one above it:
//
//	cached    values that are made once and shared
//	xds       resources, sets and answers, encoded once for each part
//	compiled  a generation and its views
//	history   views that were in force before
//	feedback  the status of proxies and objects
//	nack      what of a response a proxy refused, and what it takes instead
//	poll      what a proxy that polls is answered
//	stream    what a proxy on a stream is sent
//	fleet     the proxies that are known, and their views
//
// Read this package in this order: options.go, discovery.go, run.go, build.go,
// publish.go, compileview.go, verdict.go; roster.go, arrivals.go; locate.go, v3.go, v1.go and connect.go, which
// proxies call; status.go, inspect.go, preview.go, lostinv1.go, check.go and checkv1.go,
// which people call.
package discovery

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

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

// Errors that a server distinguishes.
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
	expiries    mesh.Expiries
	arrivals    *arrivals
	acks        acks
	caughtUp    caughtUp

	// encoder has the current generation. Its lock is read-locked to make a newcomer's
	// view, and locked to bring the compiler, the current generation and the fleet from
	// one snapshot to the next: all three are of the same snapshot.
	encoder *compiled.Encoder
	streams *stream.Shared

	previewing  sync.Mutex // held while a preview is made
	checks      *checker
	newCompiler func() compiler // of what is published
	newBeside   func() compiler // of another mesh, beside what is published
	results     *compile.Quota  // of all compilers
	compiler    compiler
	questions   sync.Mutex // see asking
	// turn is taken before encoder.Advancing is locked. It is given in the order in which
	// it is asked for; a sync.RWMutex may go to a later writer.
	turn *semaphore.Weighted
}

// New makes a server that knows nothing until Run. It panics when metrics of
// the same names are registered already.
func New(opts Options) *Publisher {
	p := &Publisher{opts: opts.withDefaults(), made: time.Now(), turn: semaphore.NewWeighted(1)}
	p.results = compile.NewQuota(p.opts.MaxResults)
	p.newCompiler = func() compiler { return compile.NewCompilerWithin(p.results) }
	p.newBeside = func() compiler { return compile.NewCompilerBeside(p.results) }
	p.compiler = p.newCompiler()
	p.arrivals = newArrivals(p.opts.Log, p.opts.Registry)
	p.fleet = fleet.New(fleet.Options{
		MaxProxies: p.opts.MaxProxies, MaxViews: p.opts.MaxViews, ProxyIdle: p.opts.ProxyIdle,
		Domain: p.opts.Settings.Domain, Began: p.made,
		AbsentFor: p.opts.AbsentFor, Turned: p.arrivals.turned,
	}, p.age)
	p.encoder = compiled.NewEncoder(p.opts.MaxProxies, p.opts.Log, p.recoverPanic, p.found)
	p.past = history.New(history.Options{
		Since:    func(revision int64) ([]schema.Change, int64, bool) { return p.opts.Source.Since(revision) },
		Settings: p.opts.PastSettings, MaxViews: p.opts.MaxViews, Encoder: p.encoder,
		NewCompiler: func() history.Compiler { return p.newBeside() },
	})
	p.streams = &stream.Shared{Encoder: p.encoder, Contents: xds.NewContents(), Convergence: &p.convergence, Revision: p.Revision}
	p.checks = newChecker(p)
	p.metrics = newMetrics(p)
	return p
}

// Ready reports whether a first complete snapshot has been published.
func (p *Publisher) Ready() bool { return p.newest.inForce() != nil }

// published is the current generation, from the moment on in which it begins to
// be published; the error says why there is none yet.
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
