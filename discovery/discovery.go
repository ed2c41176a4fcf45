// Package discovery keeps the answers for proxies ready. A Publisher follows the config
// objects and brings every view (see compiled.View) of a known proxy from one snapshot to
// the next. Requests only look up. Package server calls it; it knows nothing of HTTP.
//
//	changes ─▶ hold-off ─▶ mesh.Snapshot ─▶ compile ─▶ ir ─▶ encoded parts ─▶ view ─▶ entry
//	           run.go      build.go         compileview.go   xds              compiled  fleet
//
// All proxies with equal traits find their view in one entry. A new view replaces the old
// one as a whole, so a proxy never sees a mixture of two. It replaces the old one only if
// it differs: other views and their proxies stay unchanged. A failure of the server never
// removes configuration from a proxy. If a view cannot be compiled, or would become empty
// by accident, it keeps its last good answers, and a Problem says so. A fault of an object
// closes only its own part of a view.
//
// The packages below it, from the lowest up. None imports one further down in this list:
//
//	cached    values that are made once and shared
//	xds       resources, sets and answers, encoded once for each part
//	compiled  a generation and its views
//	pastviews views that were in force before
//	feedback  the status of proxies and objects
//	nack      which part of a response a proxy refuses, and what replaces it
//	poll      the answers to proxies that poll
//	stream    the responses to proxies on streams
//	fleet     the known proxies and their views
//
// Read this package in this order: options.go, discovery.go, run.go, build.go,
// publish.go, compileview.go, verdict.go; roster.go, arrivals.go; locate.go, v3.go, v1.go and connect.go, which
// proxies call; status.go, inspect.go, preview.go, lostinv1.go, check.go and checkv1.go,
// which people call.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Source is where the config objects come from; store/cache is one.
type Source interface {
	// Snapshot returns every object at one revision, in no particular order; ok is false
	// until the source has synced once. The caller owns the slice; the objects are shared.
	Snapshot() (objs []*schema.Object, revision int64, ok bool)
	// Since returns the changes between a revision that the source returned and the present
	// one, each object once; ok is false if they are not known. Then call Snapshot.
	Since(revision int64) (changes []schema.Change, present int64, ok bool)
	// Changed returns a channel that is closed at the next change after the call.
	Changed() <-chan struct{}
	// Err returns why the objects cannot be read at present. It is nil if they can, or if
	// that is not known.
	Err() error
}

// Files are secrets in files, in addition to the objects of the Source. When they change,
// the Publisher makes another snapshot at the same revision.
type Files interface {
	// Secrets returns their present contents.
	Secrets() *mesh.FileSecrets
	// Changed returns a channel that is closed at the next change after the call.
	Changed() <-chan struct{}
}

// Keys are the public keys of issuers, in addition to the objects of the Source. When they
// change, the Publisher makes another snapshot at the same revision.
type Keys interface {
	// Want says whose keys the objects need, each with the longest time for a fetch.
	Want(map[mesh.KeySource]time.Duration)
	// Tried waits until each wanted key was tried once, or until ctx ends.
	Tried(ctx context.Context)
	// Keys returns what is known of the wanted keys.
	Keys() *mesh.KeySets
	// Changed returns a channel that is closed at the next change after the call.
	Changed() <-chan struct{}
}

type noKeys struct{}

func (noKeys) Want(map[mesh.KeySource]time.Duration) {}
func (noKeys) Tried(context.Context)                 {}
func (noKeys) Keys() *mesh.KeySets                   { return nil }
func (noKeys) Changed() <-chan struct{}              { return nil }

type noFiles struct{}

func (noFiles) Secrets() *mesh.FileSecrets { return nil }
func (noFiles) Changed() <-chan struct{}   { return nil }

// Errors that a server distinguishes.
var (
	// ErrNotReady means that there is no configuration for this proxy yet, because no
	// snapshot has been compiled or the result cannot be served. An Envoy must keep what it
	// has and ask again.
	ErrNotReady = errors.New("no configuration compiled yet")
	// ErrOverBudget means that there is no room for the configuration of this proxy, or
	// that it alone is too large. An Envoy must keep what it has.
	ErrOverBudget = compile.ErrOverBudget
	// ErrBadNode means that the node identity is malformed.
	ErrBadNode = errors.New("bad node")
	// ErrBadRoute means that a route table's name is neither a port nor http_proxy.
	ErrBadRoute = errors.New("bad route name")
	// ErrBadType means that a v3 type URL is not served.
	ErrBadType = errors.New("unknown resource type")
)

// Publisher holds the published configuration. Its methods are safe for
// concurrent use.
type Publisher struct {
	opts    Options
	metrics *metrics
	made    time.Time
	fleet   *fleet.Fleet
	past    *pastviews.Recorder
	larges  []int64 // the last revisions that were published with large objects
	newest  verdict
	// convergence measures how long changes take to reach proxies.
	convergence feedback.Convergence
	expiries    mesh.Expiries
	arrivals    *arrivals
	acks        acks
	caughtUp    caughtUp

	// encoder has the current generation. Its lock is read-locked while the view of a new
	// proxy is made. It is locked while the compiler, the current generation and the fleet
	// go from one snapshot to the next, so that all three have the same snapshot.
	encoder *compiled.Encoder
	streams *stream.Shared

	previewing  sync.Mutex // held while a preview is made
	checks      *checker
	newCompiler func() compiler // of what is published
	newBeside   func() compiler // of another mesh, beside what is published
	results     *compile.Quota  // of all compilers
	compiler    compiler
	questions   sync.Mutex // see asking
	// advanceQueue is taken before encoder.Advancing is locked. Callers get it in the order in
	// which they ask; a sync.RWMutex may prefer a later writer.
	advanceQueue *semaphore.Weighted
}

// New returns a Publisher that has nothing before Run. It panics if metrics of the same
// names are registered already.
func New(opts Options) *Publisher {
	p := &Publisher{opts: opts.withDefaults(), made: time.Now(), advanceQueue: semaphore.NewWeighted(1)}
	p.results = compile.NewQuota(p.opts.MaxResults)
	p.newCompiler = func() compiler { return compile.NewCompilerWithin(p.results) }
	p.newBeside = func() compiler { return compile.NewCompilerBeside(p.results) }
	p.compiler = p.newCompiler()
	p.arrivals = newArrivals(p.opts.Log, p.opts.Registry)
	p.fleet = fleet.New(fleet.Options{
		MaxProxies: p.opts.MaxProxies, MaxViews: p.opts.MaxViews, ProxyIdle: p.opts.ProxyIdle,
		Domain: p.opts.Settings.Domain, Began: p.made,
		AbsentFor: p.opts.AbsentFor, RefusalChanged: p.arrivals.refusalChanged,
	}, p.age)
	p.encoder = compiled.NewEncoder(p.opts.MaxProxies, p.opts.Log, p.recoverPanic, p.found)
	p.past = pastviews.New(pastviews.Options{
		Since:    func(revision int64) ([]schema.Change, int64, bool) { return p.opts.Source.Since(revision) },
		Settings: p.opts.PastSettings, MaxViews: p.opts.MaxViews, Encoder: p.encoder, Alone: p.opts.Alone,
		NewCompiler: func() pastviews.Compiler { return p.newBeside() },
	})
	p.streams = &stream.Shared{Encoder: p.encoder, Contents: xds.NewContents(), Convergence: &p.convergence, Revision: p.Revision}
	p.checks = newChecker(p)
	p.metrics = newMetrics(p)
	return p
}

// Ready reports whether a first complete snapshot has been published.
func (p *Publisher) Ready() bool { return p.newest.inForce() != nil }

// published returns the current generation, from the beginning of its publication. The
// error says why there is none yet.
func (p *Publisher) published() (*compiled.Generation, error) {
	if g := p.encoder.Current.Load(); g != nil {
		return g, nil
	}
	if err := p.opts.Source.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil, ErrNotReady
}

// Revision returns the store revision of the published snapshot, 0 before Ready.
func (p *Publisher) Revision() int64 {
	if g := p.newest.inForce(); g != nil {
		return g.Mesh.Revision
	}
	return 0
}
