// Package server is the HTTP server of the control plane. One listener serves the
// config objects by the Kubernetes API conventions, Envoy's REST discovery (package
// rest), health and metrics.
//
// A request passes middleware.go (id, log, metrics, panics) and the routes in this
// file to one handler. The handler decodes the request (query.go, body.go, package
// wire), calls one method of the store, and answers (encode.go, table.go,
// watch.go). Every failure is answered by fail in errors.go as a Status object.
//
// Routes and reads:
//
//	resource.go, endpoints.go     URLs of one kind, and the list of all endpoints
//	read.go, page.go              GET and LIST, pages of lists
//	keptlists.go, listtext.go     cache of lists that many clients request, lists in JSON
//	history.go                    versions of objects, changes since a revision
//	metadata.go                   metadata of objects alone
//	etag.go, compress.go          ETags and 304, gzip
//	groups.go, groupdiscovery.go  /api and /apis, aggregated discovery
//	openapi.go                    /openapi (package openapi)
//	accessreview.go               reviews of what the caller may do
//	health.go, metrics.go         /healthz, /livez, /readyz, /version; /metrics
//
// Writes:
//
//	write.go, deleteoptions.go    POST, PUT, DELETE
//	patch.go, apply.go            patches, server-side apply
//	deletecollection.go           DELETE on a collection
//	dryrun.go, acknowledged.go    dry runs, report of writes to discovery
//	warnings.go                   Warning headers of answers
//	action.go                     Transactions and Rollbacks as API objects
//	transaction.go, operation.go  operations that are all done or none
//	refusedsteps.go               errors of several operations
//	rollback.go, rollbackstep.go  return to a revision, at once or in steps
//	ifmatch.go                    If-Match and If-None-Match of writes
//
// Watches:
//
//	watch.go, stream.go           the request of a watch, its stream of events
//	changes.go, turns.go          changes that a stream reads, turns to write
//	events.go, frames.go          encoding of events, cache of encoded objects
//	watchkinds.go                 watches of several kinds
//	initialevents.go              sendInitialEvents
//	statusevents.go               events for changed statuses
//	watchplaces.go                bound on watches, by client
//	selection.go, serversent.go   selectors, server-sent events for browsers
//
// Statuses and proxies:
//
//	status.go, standings.go       status of objects, report to other replicas (package status)
//	peers.go                      requests to other replicas (package replica)
//	outage.go                     a store that does not answer
//	problems.go, references.go    /debug/problems, references between objects
//	proxies.go                    proxies of all replicas
//	proxyconfig.go, proxyroute.go configuration of a proxy, its handling of a request
//	preview.go                    preview of changes to the configuration of proxies
//
// Limits and protection:
//
//	crossorigin.go                protection from web pages in a browser
//	largereads.go, pacing.go      turns of large reads, and of encoding large answers
//	unread.go                     answers that clients do not read
//	admission.go, longwork.go     memory of writes, turns of large objects
//	storedlength.go               length of the stored objects of a transaction
//	outline.go                    nesting and length of a body before it is decoded
//
// JSON answers do not encode stored objects again: a GET, a list and a watch event
// send the bytes in the store. The status is appended to these bytes.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Server. Store and Reads are required. A limit of zero means
// the default in its comment.
type Options struct {
	// Store performs the writes. It must validate objects (store.Strict), because the
	// server relies on it to check the result of a patch.
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction
	// (store.MaxTxnOps). A dry run accepts no more.
	MaxTransaction int
	// Reads answers GET, LIST and WATCH. It is usually the cache over Store.
	Reads store.Reader
	// Discovery answers proxies. If it is nil, the server is only a config store and
	// has no discovery paths.
	Discovery *discovery.Publisher
	// Peers are the other replicas; nil if there are none.
	Peers replica.Peers
	// Ready are the checks of /readyz, run in this order.
	Ready []Check
	// Registry collects the server's metrics, and /metrics shows it. If it is nil, the
	// server makes its own.
	Registry *prometheus.Registry
	// Long admits the writes of large objects; nil means one for all processors.
	Long *admission.Long
	// LongReads admits the encoding of large answers; nil means one for all
	// processors.
	LongReads *admission.Long
	// Log receives a line for each request that changes something or fails, and at
	// level debug for all others; nil drops them.
	Log *slog.Logger
	// Version is the answer of /version.
	Version version.Info

	// Sockets are the addresses for proxies on this machine. Anybody may ask for them.
	Sockets rest.Sockets

	// ProxyReturn is how long after the start the server expects proxies that were
	// connected before to reconnect; 0 means that it does not wait. During that time,
	// an object that no proxy has is Unknown instead of programmed, in a mesh that is
	// older than the start.
	ProxyReturn time.Duration

	// HostNames are the names that requests may use, besides localhost and loopback
	// addresses on a loopback listener, and besides what Envoys send. If there are
	// any, discovery refuses other names on other listeners too.
	HostNames []string

	// RequestTimeout bounds everything except a watch (30 s).
	RequestTimeout time.Duration
	// RevisionTimeout is how long a read waits for the resourceVersion that it asks
	// for (3 s, as in Kubernetes).
	RevisionTimeout time.Duration
	// WatchWriteTimeout is how long a watching client may leave data unread before it
	// is cut off (30 s).
	WatchWriteTimeout time.Duration
	// BookmarkInterval is the time between two bookmarks of a watch (1 min).
	BookmarkInterval time.Duration
	// HeartbeatInterval is the time between two comments of a watch by server-sent
	// events (15 s).
	HeartbeatInterval time.Duration
	// MaxWatches bounds the watches at one time (three quarters of MaxConnections, at
	// most 16384). One more replaces a watch of the client that has the most, or is
	// answered with 429.
	MaxWatches int
	// MaxConnections bounds the connections at one time (three quarters of the files
	// that the process may open, at most 32768). One more replaces the connection that
	// the server has waited for longest, be it for a request or for the rest of one.
	// If all are being answered, the new one is closed.
	MaxConnections int
	// WriteMemory bounds, in bytes, the memory for decoding all small writes together,
	// and separately that for large ones (128 MiB, which is also the least). Writes
	// that find no room wait in line.
	WriteMemory int64
	// ShutdownTimeout is how long running requests may take to finish at shutdown (10
	// s).
	ShutdownTimeout time.Duration
}

func (o *Options) setDefaults() {
	if o.Long == nil {
		o.Long = admission.NewLong(runtime.GOMAXPROCS(0))
	}
	if o.LongReads == nil {
		o.LongReads = admission.NewLongReads(runtime.GOMAXPROCS(0))
	}
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	o.RevisionTimeout = cmp.Or(o.RevisionTimeout, 3*time.Second)
	o.WatchWriteTimeout = cmp.Or(o.WatchWriteTimeout, 30*time.Second)
	o.BookmarkInterval = cmp.Or(o.BookmarkInterval, time.Minute)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 15*time.Second)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 10*time.Second)
	o.MaxTransaction = cmp.Or(o.MaxTransaction, store.MaxTxnOps)
	o.MaxConnections = cmp.Or(o.MaxConnections, admission.DefaultConnections(1))
	o.MaxWatches = cmp.Or(o.MaxWatches, min(16384, watchShare(o.MaxConnections)))
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server answers HTTP. Make it with New. It is safe for concurrent use.
type Server struct {
	opts    Options
	metrics *metrics
	ids     *requestIDs
	router  chi.Router
	pacer   *pacer
	bodies  *decoder

	objects *api
	actions *actionHandler
	watches *watcher
	inspect *inspector // nil without discovery

	stopping chan struct{} // closed when watches must end
	stop     func()
}

// New returns a server. It starts nothing.
func New(opts Options) *Server {
	opts.setDefaults()
	s := &Server{
		opts:     opts,
		metrics:  newMetrics(opts.Registry),
		ids:      newRequestIDs(),
		pacer:    newPacer(opts.LongReads),
		bodies:   newDecoder(opts.Long, opts.Reads, opts.WriteMemory),
		stopping: make(chan struct{}),
	}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	shown, largeReads := &statuses{}, newLargeReads(opts.LongReads)
	objects := apiOptions{
		Store: opts.Store, MaxTransaction: opts.MaxTransaction, Reads: opts.Reads, RevisionTimeout: opts.RevisionTimeout,
		Statuses: shown, Bodies: s.bodies, LargeReads: largeReads, Pacer: s.pacer,
	}
	if opts.Discovery != nil {
		objects.Store, objects.Check = acknowledging{opts.Store, opts.Discovery}, opts.Discovery.Check
		var reporter *status.Reporter
		shown.Board, reporter = status.New(status.Options{
			Statuses: opts.Discovery.ObjectStatuses, Peers: opts.Peers, ReportPath: standingsPath,
			ProxyReturn: opts.ProxyReturn, Log: opts.Log,
		})
		s.inspect = newInspector(inspectOptions{
			Discovery: opts.Discovery, Reads: opts.Reads, Store: opts.Store, MaxTransaction: opts.MaxTransaction,
			Peers: opts.Peers, Reporter: reporter, Bodies: s.bodies, LargeReads: largeReads, Log: opts.Log,
		})
	}
	s.objects = newAPI(objects)
	s.actions = newActionHandler(actionOptions{
		Store: objects.Store, MaxTransaction: opts.MaxTransaction, Reads: opts.Reads, Objects: s.objects, Bodies: s.bodies,
	})
	s.watches = newWatcher(watchOptions{
		Reads: opts.Reads, Statuses: shown, RequestTimeout: opts.RequestTimeout, RevisionTimeout: opts.RevisionTimeout,
		WatchWriteTimeout: opts.WatchWriteTimeout, BookmarkInterval: opts.BookmarkInterval, HeartbeatInterval: opts.HeartbeatInterval,
		MaxWatches: opts.MaxWatches, Running: s.metrics.watchers, Stopping: s.stopping, Log: opts.Log,
	})
	s.router = s.routes()
	return s
}

// Handler returns the handler of all paths. Serve adds what belongs to connections:
// time limits and the shutdown.
func (s *Server) Handler() http.Handler { return s.router }

// routes returns the router of the server.
func (s *Server) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.observe, s.recoverPanic, rest.OnlyPolls, middleware.GetHead, s.refuseOtherSites)
	r.NotFound(s.noSuchPath)
	r.MethodNotAllowed(s.noSuchMethod)

	r.Group(s.mountAPI)
	if s.opts.Discovery != nil {
		r.Group(func(r chi.Router) {
			r.Use(s.refusePages)
			rest.Mount(r, s.opts.Discovery, s.opts.Sockets, s.opts.Log)
		})
	}
	return r
}

// mountAPI adds the routes for people and their programs: everything except the
// polls of Envoys.
func (s *Server) mountAPI(r chi.Router) {
	r.Use(s.refuseOtherNames, s.checkURL)
	r.Get("/", s.index)
	r.Get("/healthz", s.healthz)
	r.Get("/livez", s.livez)
	r.Get("/readyz", s.readyz)
	r.Get("/version", s.handle(s.version))
	r.Method(http.MethodGet, "/metrics", s.metrics.handler(s.opts.Registry))

	r.Get("/api", s.handle(s.coreVersions))
	r.Get("/api/v1", s.handle(s.coreResources))
	r.Get("/api/v1/namespaces/{namespace}", s.handle(s.namespace))
	for path, instead := range notInCore {
		r.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, notHere(instead)) })
	}
	r.Get("/apis", s.handle(s.groups))
	r.Get("/apis/{group}", s.handle(s.group))
	r.Get("/apis/{group}/{version}", s.handle(s.resources))
	r.Get("/openapi/v2", s.handle(s.openAPIv2))
	r.Get("/openapi/v3", s.handle(s.openAPIPaths))
	r.Get("/openapi/v3/apis/{group}/{version}", s.handle(s.openAPI))
	for _, kind := range schema.Kinds() {
		for _, version := range kind.Versions() {
			s.mount(r, s.kindEndpoints(kind, version))
			s.mountStatus(r, kind, version)
		}
	}
	s.mount(r, s.registryEndpoints())
	s.mount(r, s.reviewEndpoints())
	if s.opts.Discovery != nil {
		r.Get(problemsPath, s.bounded(s.inspect.problems))
	}
}

// Serve answers on ln and on the private listeners until ctx ends. Then it accepts
// no new connections, ends watches with a last bookmark and gives other requests
// ShutdownTimeout to finish. It closes the listeners and returns nil after an
// orderly end. Only processes that may have private keys can connect to a private
// listener, which accepts nothing but their polls. A Server can serve once.
func (s *Server) Serve(ctx context.Context, ln net.Listener, private ...net.Listener) error {
	srv := &http.Server{
		Handler:           s.router,
		ReadHeaderTimeout: min(10*time.Second, s.opts.RequestTimeout),
		ReadTimeout:       s.opts.RequestTimeout,
		WriteTimeout:      2 * s.opts.RequestTimeout,
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(l net.Listener) context.Context { return markListener(l, slices.Contains(private, l)) },
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	admission.NewConnections(s.opts.MaxConnections).Attach(srv)
	srv.RegisterOnShutdown(s.stop)
	failed := make(chan error, 1+len(private))
	for _, l := range append(private[:len(private):len(private)], ln) {
		go func() { failed <- fmt.Errorf("serve on %s: %w", l.Addr(), srv.Serve(l)) }()
	}
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	return s.shutdown(srv)
}

func (s *Server) shutdown(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.opts.Log.Warn("requests still running at shutdown are cut off", "after", s.opts.ShutdownTimeout)
		return srv.Close()
	}
	return err
}
