// Package server is the HTTP server of the control plane. One listener serves the
// config objects by the Kubernetes API conventions, Envoy's REST discovery (package
// rest), health and metrics.
//
// A request passes middleware.go (id, log, metrics, panics) and the routes in
// server.go to the handler of one of the packages below. The handler decodes the
// request (packages wire and intake), calls the store or discovery, and answers
// (packages render and answer). Every failure is answered by fail in errors.go as a
// Status object.
//
// The handlers:
//
//	objects    reads and writes of objects
//	watch      watches
//	actions    Transactions and Rollbacks
//	inspect    proxies, their configuration, problems, previews
//	authority  the certificate authority of the mesh
//	rest       discovery by polls (package ads has the streams)
//
// In this package:
//
//	server.go, options.go         the routes, and what handlers share
//	listeners.go                  the listeners, and what each of them serves
//	access.go, rights.go          the sender of a request, and the right that each route needs
//	impersonation.go              requests of a user as somebody else
//	audit.go, auditedwriter.go    events of the audit log
//	auditobjects.go               the objects in them
//	tokens.go                     tokens of ServiceAccounts
//	endpoints.go                  endpoints of all handlers, mounted with their time limits
//	middleware.go, errors.go      what all requests pass, failures
//	overload.go, seat.go          classes of requests, and limits of users
//	crossorigin.go                protection from web pages in a browser
//	groups.go, groupdiscovery.go  /api and /apis, aggregated discovery
//	openapi.go                    /openapi (package openapi)
//	accessreview.go               reviews of what the caller may do
//	health.go, metrics.go         /healthz, /livez, /readyz, /version; /metrics
//	acknowledged.go               report of writes to discovery
package server

import (
	"context"
	"maps"
	"net/http"
	"net/http/pprof"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/actions"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/authority"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/server/inspect"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/objects"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/watch"
	"github.com/pilot-api/pilot-api/store"
)

// Server answers HTTP. Make it with New. It is safe for concurrent use.
type Server struct {
	opts    Options
	metrics *metrics
	ids     *requestIDs
	router  chi.Router
	pacer   *answer.Pacer
	bodies  *intake.Decoder
	guard   authz.Guard
	rights  rights

	overload *overload
	objects  *objects.API
	actions  *actions.Handler
	watches  *watch.Handler
	inspect  *inspect.Handler // nil without discovery
	mesh     *authority.Handler
	board    *status.Board // nil without discovery

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
		pacer:    answer.NewPacer(opts.LongReads),
		bodies:   intake.New(opts.Long, opts.Reads, opts.WriteMemory),
		guard:    authz.Guard{Authorizer: authz.Open{}},
		rights:   maps.Clone(fixedRights),
		stopping: make(chan struct{}),
	}
	s.overload = newOverload(opts)
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	if opts.Roles != nil {
		s.guard.Authorizer = opts.Roles
	}
	s.compose()
	s.router = s.routes()
	return s
}

// compose makes the handlers from what they share.
func (s *Server) compose() {
	opts, writes := s.opts, acknowledging{s.opts.Store, s.opts.Discovery}
	shown, reads := &render.Statuses{}, answer.NewLargeReads(opts.LongReads)
	shown.Stored, _ = opts.Reads.(store.StatusReader)
	var check func(context.Context, []schema.Change, bool) diag.List
	var await func(context.Context, int64) error
	if opts.Discovery != nil {
		check = checkedBy(opts.Discovery)
		board, reporter := status.New(status.Options{
			Statuses: opts.Discovery.ObjectStatuses, Peers: opts.Peers, ReportPath: inspect.StandingsPath,
			ProxyReturn: opts.ProxyReturn, OwnNamesOnly: opts.Roles != nil, Log: opts.Log,
		})
		shown.Board, s.board = board, board
		s.inspect = inspect.New(inspect.Options{
			Discovery: opts.Discovery, Reads: opts.Reads, Store: opts.Store, MaxTransaction: opts.MaxTransaction,
			Peers: opts.Peers, Reporter: reporter, Statuses: board, Bodies: s.bodies, LargeReads: reads, Log: opts.Log, Guard: s.guard,
		})
		await = s.inspect.AwaitPublished
	}
	asked := authority.Options{CA: opts.Authority, Rotate: opts.RotateAuthority, Revoke: opts.Revoke, Bodies: s.bodies}
	if s.inspect != nil {
		asked.Proxies = s.inspect.ProxiesEverywhere
	}
	s.mesh = authority.New(asked)
	s.objects = objects.New(objects.Options{
		Store: writes, MaxTransaction: opts.MaxTransaction, Reads: opts.Reads, RevisionTimeout: opts.RevisionTimeout,
		AwaitPublished: await, Check: check, Statuses: shown, Bodies: s.bodies, LargeReads: reads, Pacer: s.pacer, Guard: s.guard,
		Gate: gate.New(gate.Options{Guard: s.guard, Roles: opts.Roles, Reads: opts.Reads, Hosts: opts.Hosts, Domain: opts.Domain}),
	})
	s.actions = actions.New(actions.Options{
		Store: writes, MaxTransaction: opts.MaxTransaction, Reads: opts.Reads, Objects: s.objects, Bodies: s.bodies, Guard: s.guard,
	})
	s.watches = watch.New(watch.Options{
		Reads: opts.Reads, Statuses: shown, RequestTimeout: opts.RequestTimeout, RevisionTimeout: opts.RevisionTimeout,
		WatchWriteTimeout: opts.WatchWriteTimeout, BookmarkInterval: opts.BookmarkInterval, HeartbeatInterval: opts.HeartbeatInterval,
		MaxWatches: opts.MaxWatches, MaxUserWatches: opts.Users.Watches, Running: s.metrics.watchers, Stopping: s.stopping, Log: opts.Log, Guard: s.guard, WhileAllowed: s.whileAllowed,
	})
}

// RecordStatuses writes the statuses of objects to a store that keeps them, whenever this
// server is the one that may, until ctx ends. It returns ctx's error.
func (s *Server) RecordStatuses(ctx context.Context, to status.Keeper) error {
	if s.board == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return status.NewRecorder(s.board, to, s.opts.Log).Run(ctx)
}

// Handler returns the handler of all paths. Serve adds what belongs to connections:
// time limits and the shutdown.
func (s *Server) Handler() http.Handler { return s.router }

// routes returns the router of the server.
func (s *Server) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.observe, s.audited, s.recoverPanic, rest.OnlyPolls, s.onlyOfListener, middleware.GetHead, s.refuseOtherSites)
	r.NotFound(s.noSuchPath)
	r.MethodNotAllowed(s.noSuchMethod)

	r.Group(s.mountHealth)
	r.Group(s.mountAPI)
	if s.opts.Discovery != nil {
		r.Group(func(r chi.Router) {
			r.Use(s.refusePages, s.admitPoll)
			rest.Mount(r, s.opts.Discovery, s.opts.Sockets, s.opts.Proxies, s.opts.Log)
		})
	}
	return r
}

// mountHealth adds the routes by which others find out whether the server works. Everybody
// may ask.
func (s *Server) mountHealth(r chi.Router) {
	r.Use(s.refuseOtherNames, s.checkURL)
	r.Get("/healthz", s.healthz)
	r.Get("/livez", s.livez)
	r.Get("/readyz", s.readyz)
}

// mountAPI adds the routes for people and their programs: everything except the
// polls of Envoys.
func (s *Server) mountAPI(r chi.Router) {
	r.Use(s.refuseOtherNames, s.authenticate, s.admit, s.checkURL, s.authorize)
	r.Get("/", s.index)
	r.Get("/version", s.handle(s.version))
	r.Method(http.MethodGet, "/metrics", s.metrics.handler(s.opts.Registry))

	if s.opts.Authn != nil {
		// Profiles show what the server works on, so only users with a right see them.
		r.Get("/debug/pprof/", pprof.Index)
		r.Get("/debug/pprof/{profile}", profile)
	}

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
	r.Get("/openapi/v3/api/v1", s.handle(s.openAPI))
	for _, kind := range schema.Kinds() {
		for _, version := range kind.Versions() {
			s.mount(r, kind, s.kindEndpoints(kind, version))
			if !kind.Flat {
				s.mountStatus(r, kind, version)
			}
		}
	}
	s.mount(r, nil, s.registryEndpoints())
	s.mount(r, nil, s.reviewEndpoints())
	if s.opts.Discovery != nil {
		r.Get(inspect.ProblemsPath, s.bounded(s.inspect.Problems))
	}
}
