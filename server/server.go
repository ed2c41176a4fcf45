// Package server is the HTTP front of the control plane: the config objects in
// the Kubernetes API conventions, Envoy's REST discovery, health and metrics,
// all on one listener.
//
// The way of a request: middleware.go (id, log, metrics, panics) → routes in
// this file → one handler, which decodes (query.go, body.go, negotiate.go),
// calls one method of the store, and answers (encode.go, table.go, watch.go).
// Whatever fails leaves through fail in errors.go as a Status object.
//
//	resource.go, endpoints.go     the URLs of one kind, and of all
//	read.go, page.go              GET and LIST, in pages
//	keptlists.go, listtext.go     lists that many ask for, each put together once
//	write.go, deleteoptions.go    POST, PUT, DELETE
//	patch.go, apply.go            PATCH by what to change, and by what is wanted
//	deletecollection.go           DELETE on all that is selected
//	dryrun.go, acknowledged.go    writes that write nothing, and that discovery is told of
//	warnings.go                   what a write is answered beside its result
//	transaction.go                operations that are done together or not at all
//	history.go                    what objects were, and what has changed since
//	rollback.go, rollbackstep.go  the way back to it: at once, and in steps
//	watch.go, stream.go           ?watch=true: what is asked, what is sent
//	changes.go, turns.go          what a stream reads, and when it may write
//	events.go, frames.go          how an event is spelled, once for all who watch
//	watchkinds.go                 one watch over several kinds
//	initialevents.go              the state at the beginning of a watch
//	statusevents.go               statuses that change while one watches
//	watchplaces.go                which watches may run at one time
//	selection.go, serversent.go   what of it is told, and to browsers
//	metadata.go, yaml.go          no more than the metadata, and YAML
//	ifmatch.go                    what a write wants the object to be
//	etag.go, compress.go          what a client has already, and gzip
//	groups.go, groupdiscovery.go  what there is: /apis, in parts or in one document
//	openapi.go                    and what it takes and answers: /openapi
//	openapidocument.go, shapes.go that document, and the schemas in it
//	accessreview.go               what one may do with it
//	health.go, metrics.go         /healthz, /livez, /readyz, /version; /metrics
//	status.go, standings.go       how objects stand with the proxies, of all replicas
//	lookout.go, wordings.go       looks at that which all share, and statuses which many have
//	proxyreturn.go                and with those that may be on their way back
//	peers.go, peerstandings.go    what other replicas are asked, and say of their proxies
//	problems.go, references.go    /debug/problems, and what objects name
//	proxies.go                    what proxies have, of all replicas
//	proxyconfig.go, proxyroute.go what one is told, and what that does to a request
//	preview.go                    what objects would change in what they are told
//	discovery_v1.go               Envoy's polls in v1
//	discovery_v3.go, poll.go      and in v3, of which little is read
//	pollsplit.go, pollnode.go     of that: the small parts, and who asks
//	nodehash.go                   nodes that were read before
//	cachestats.go                 /cache_stats: what v1 polls were answered
//	crossorigin.go                what web pages may not do through a browser
//	private.go                    what the sockets for Envoys take
//	largereads.go, pacing.go      reads of records, and encoding, which may take long
//	admission.go, longwork.go, connections.go  what all requests together may take
//	outline.go                    how deep and how long a body is, before it is decoded
//
// Objects are never decoded or encoded on the way out: the bytes a store holds
// are the bytes of a GET, of a list's items and of watch events.
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
	"github.com/pilot-api/pilot-api/store"
)

// Options are what a Server is made of. Store and Reads are needed; every
// limit left at zero takes the default named beside it.
type Options struct {
	// Store takes the writes. It must validate what it is given
	// (store.Strict): a patch is only as good as what checks its result.
	Store store.Interface
	// MaxTransaction is how many operations Store takes in one transaction
	// (store.MaxTxnOps): a dry run takes no more.
	MaxTransaction int
	// Reads answers GET, LIST and WATCH; usually the cache over Store.
	Reads store.Reader
	// Discovery answers proxies. Without one (nil) the server is a config
	// store only, and the discovery paths do not exist.
	Discovery *discovery.Publisher
	// Peers are the other replicas; nil for none.
	Peers Peers
	// Ready are the checks behind /readyz, run in this order.
	Ready []Check
	// Registry collects the server's metrics and is what /metrics shows; nil
	// makes an own one.
	Registry *prometheus.Registry
	// Long admits the writes of large objects; nil makes one for all processors.
	Long *admission.Long
	// LongReads admits the making of large answers; nil makes one for all processors.
	LongReads *admission.Long
	// Log takes one line for each request that changes something or fails, and
	// at level debug for all others; nil drops them.
	Log *slog.Logger
	// Version is answered at /version.
	Version version.Info

	// Sockets are told to whoever asks where to ask on this machine.
	Sockets Sockets

	// ProxyReturn is how long proxies that were connected before may be on their
	// way back after the start (0: nobody is waited for). In a mesh older than
	// that, an object that no proxy has is Unknown so long, and not programmed.
	ProxyReturn time.Duration

	// HostNames are names under which the server is asked besides localhost
	// and loopback addresses where it listens on one, and besides what Envoys
	// send. With any, discovery is answered under no other name elsewhere too.
	HostNames []string

	// RequestTimeout bounds everything but a watch (30 s).
	RequestTimeout time.Duration
	// RevisionTimeout is how long a read waits for the resourceVersion that it
	// asks for (3 s, as in Kubernetes).
	RevisionTimeout time.Duration
	// WatchWriteTimeout is how long a watching client may leave data unread
	// before it is cut off (30 s).
	WatchWriteTimeout time.Duration
	// BookmarkInterval is the time between two bookmarks of a watch (1 min).
	BookmarkInterval time.Duration
	// HeartbeatInterval is the time between two comments of a watch by
	// server-sent events (15 s).
	HeartbeatInterval time.Duration
	// MaxWatches bounds the watches at one time (three quarters of MaxConnections, at
	// most 16384). One more takes the place of one of the client that has the most, or is
	// told 429.
	MaxWatches int
	// MaxConnections bounds the connections at one time. One more takes the
	// place of the one that was waited for longest, be it for a request or for
	// the rest of one, or is closed where all are being answered (three quarters
	// of the files that the process may open, at most 32768).
	MaxConnections int
	// WriteMemory bounds, in bytes, what small writes being decoded take
	// together, and apart from them large ones (128 MiB, which is also the
	// least). Those that find no room wait in line.
	WriteMemory int64
	// ShutdownTimeout is what running requests get to finish (10 s).
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
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultConnections(1))
	o.MaxWatches = cmp.Or(o.MaxWatches, min(16384, watchShare(o.MaxConnections)))
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server answers HTTP. Make it with New; it is safe for concurrent use.
type Server struct {
	opts    Options
	metrics *metrics
	ids     *requestIDs
	router  chi.Router
	watches *watchPlaces
	turns   turns     // of the watches that write
	frames  frames    // that they write
	kept    keptLists // for who asks again

	writeMemory *writeMemory
	largeReads  *largeReads
	pacer       *pacer
	statuses    *statusBoard // nil without discovery
	own         *ownStandings

	stopping chan struct{} // closed when watches must end
	stop     func()
}

// New builds a server. It starts nothing.
func New(opts Options) *Server {
	opts.setDefaults()
	s := &Server{
		opts:    opts,
		metrics: newMetrics(opts.Registry),
		ids:     newRequestIDs(),
		watches: newWatchPlaces(opts.MaxWatches),
		turns:   newTurns(),

		writeMemory: newWriteMemory(opts.WriteMemory),
		largeReads:  newLargeReads(opts.LongReads),
		pacer:       newPacer(opts.LongReads),
		stopping:    make(chan struct{}),
	}
	s.kept.turn = s.pacer.turnOfList
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	if opts.Discovery != nil {
		s.opts.Store = acknowledging{opts.Store, opts.Discovery}
		standings := newStandings(opts.Discovery.ObjectStatuses, opts.Log)
		back := newProxyReturn(opts.ProxyReturn)
		s.own = &ownStandings{lookout: standings, back: back}
		s.statuses = newStatusBoard(standings, back, newPeerBoard(opts.Peers, opts.Log), opts.Log)
	}
	s.router = s.routes()
	return s
}

// Handler answers all paths of the server. Serve adds what belongs to a
// connection: time limits and the shutdown.
func (s *Server) Handler() http.Handler { return s.router }

// routes is the map of the server.
func (s *Server) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.observe, s.recoverPanic, onlyPolls, middleware.GetHead, s.refuseOtherSites)
	r.NotFound(s.noSuchPath)
	r.MethodNotAllowed(s.noSuchMethod)

	r.Group(s.mountAPI)
	if s.opts.Discovery != nil {
		r.Group(func(r chi.Router) {
			r.Use(s.refusePages)
			mountDiscovery(r, s.opts.Discovery, s.opts.Sockets, s.opts.Log)
		})
	}
	return r
}

// mountAPI routes what people and their programs ask for, which is all but
// what Envoys poll.
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
		mount(r, s.kindEndpoints(kind))
		s.mountStatus(r, kind)
	}
	mount(r, s.registryEndpoints())
	mount(r, s.reviewEndpoints())
	if s.opts.Discovery != nil {
		r.Get(problemsPath, s.bounded(s.problems))
	}
}

// Serve answers on ln, and on private listeners, until ctx ends, then stops: no new
// connections, watches are ended with a last bookmark, other requests get
// ShutdownTimeout to finish. It closes the listeners and returns nil after an orderly
// end. Only those who may have private keys can connect to a private listener, which
// takes their polls and nothing else. A Server can serve once.
func (s *Server) Serve(ctx context.Context, ln net.Listener, private ...net.Listener) error {
	conns := newConnections(s.opts.MaxConnections)
	srv := &http.Server{
		Handler:           conns.arrivals(s.router),
		ReadHeaderTimeout: min(10*time.Second, s.opts.RequestTimeout),
		ReadTimeout:       s.opts.RequestTimeout,
		WriteTimeout:      2 * s.opts.RequestTimeout,
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(l net.Listener) context.Context { return markListener(l, slices.Contains(private, l)) },
		ConnState:         conns.changed,
		ConnContext:       conns.named,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
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
