package watch

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Handler.
type Options struct {
	Reads    store.Reader
	Statuses *render.Statuses
	// RequestTimeout bounds the time until a watch has begun, and RevisionTimeout the wait
	// for the revision that it asks for.
	RequestTimeout, RevisionTimeout time.Duration
	// WatchWriteTimeout, BookmarkInterval, HeartbeatInterval and MaxWatches are those of
	// server.Options.
	WatchWriteTimeout, BookmarkInterval, HeartbeatInterval time.Duration

	MaxWatches int
	// MaxUserWatches bounds the watches of one user at one time; 0 means no bound.
	MaxUserWatches int
	// Running counts the watches that run.
	Running prometheus.Gauge
	// Stopping is closed when watches must end.
	Stopping <-chan struct{}
	Log      *slog.Logger
	// Guard decides which kinds callers may watch together. WhileAllowed returns the
	// context for a watch. It ends when the caller loses the right to the watch.
	Guard        authz.Guard
	WhileAllowed func(r *http.Request, allowed func(context.Context) bool) (context.Context, context.CancelFunc)
}

// Handler answers watches. It is safe for concurrent use.
type Handler struct {
	opts    Options
	permits *watchPermits
	slots   writeSlots // limit the watches that write
}

// New returns a Handler. It starts nothing.
func New(opts Options) *Handler {
	return &Handler{opts: opts, permits: newWatchPermits(opts.MaxWatches, opts.MaxUserWatches), slots: newWriteSlots()}
}

// watched answers the watches of one kind in one version.
type watched struct {
	*Handler
	*render.Resource
}

// Kind returns the handler of watches of a kind in a version.
func (h *Handler) Kind(kind *schema.Kind, version string) wire.Handler {
	return h.of(kind, version).watch
}

func (h *Handler) of(kind *schema.Kind, version string) *watched {
	return &watched{h, render.New(h.opts.Statuses, kind, version)}
}

// watch answers ?watch=true on a collection. Failures get a real status code before
// the stream begins. Only an expired revision is reported in the stream, as in
// Kubernetes, whose clients then list again; after a status code of 410 they would
// retry.
func (k *watched) watch(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return errNoHead()
	}
	asked, err := k.watchRequest(r, k.Scope(r), render.ListParams, wire.JSON, wire.Table, wire.Metadata, wire.Events)
	if err != nil {
		return err
	}
	return k.serveWatch(w, r, asked)
}

func (k *watched) serveWatch(w http.ResponseWriter, r *http.Request, asked *watchRequest) error {
	permit, err := k.permits.take(wire.Sender(r))
	if err != nil {
		return apierrors.NewTooManyRequests(err.Error(), 1)
	}
	defer k.permits.leave(permit)
	k.opts.Running.Inc()
	defer k.opts.Running.Dec()

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	started, err := k.beginWatch(ctx, asked)
	switch {
	case errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrSlow):
		newStream(w, k, asked).writeEnd(err)
		return nil
	case err != nil:
		return err
	}
	wire.WarnOfUnreadable(w, k.opts.Reads, asked.scope)
	stream := newStream(w, k, asked)
	stream.ended = permit.ended
	return stream.run(ctx, started)
}

// watchRequest is a decoded query of a watch.
type watchRequest struct {
	scope    store.Scope
	selected render.Selection
	// after is the resourceVersion to resume from. If it is 0, the watch begins with
	// the present state as ADDED events, as fresh as fresh requires.
	after     int64
	fresh     int64
	bookmarks bool
	changes   bool          // send changes only, not the state before them
	marked    bool          // mark the first bookmark as the end of the state
	statuses  bool          // send MODIFIED events for changes of a status alone
	whole     bool          // the client knows all changes of revision after
	timeout   time.Duration // 0 for none
	events    eventEncoder
}

// watchTime converts seconds to a Duration. It returns the largest one if there are
// too many seconds.
func watchTime(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second
}

// watchRequest reads the query and narrows scope by its selectors.
func (k *watched) watchRequest(r *http.Request, scope store.Scope, allowed []string, offer ...wire.Format) (*watchRequest, error) {
	f, err := wire.Negotiate(r, offer...)
	if err != nil {
		return nil, err
	}
	q := wire.Query(r)
	if err := wire.CheckParams(q, allowed); err != nil {
		return nil, err
	}
	asked := &watchRequest{}
	if asked.fresh, err = wire.AtLeastParam(q); err != nil {
		return nil, err
	}
	if asked.fresh > 0 {
		asked.after = asked.fresh
	}
	if err := asked.readInitialEvents(q, f); err != nil {
		return nil, err
	}
	if asked.selected, err = k.ParseSelection(q); err != nil {
		return nil, err
	}
	asked.scope = asked.selected.Narrow(scope)
	if asked.bookmarks, err = wire.BoolParam(q, "allowWatchBookmarks"); err != nil {
		return nil, err
	}
	if asked.statuses, err = wire.BoolParam(q, "statusEvents"); err != nil {
		return nil, err
	}
	if asked.whole, err = wire.BoolParam(q, "wholeRevisions"); err != nil {
		return nil, err
	}
	// Clients take a resourceVersion as their position, and the event of a status has
	// an old one, which would set them back. A client that follows one object by name
	// wants the status; others must ask for it. Metadata has no status.
	asked.statuses = f != wire.Metadata && (asked.statuses || !q.Has("statusEvents") && asked.scope.Name != "")
	seconds, err := wire.CountParam(q, "timeoutSeconds")
	if err != nil {
		return nil, err
	}
	asked.timeout = watchTime(seconds)
	include, err := render.IncludeObjectParam(r)
	if err != nil {
		return nil, err
	}
	asked.events = eventEncoder{k: k.Resource, format: f, include: include}
	return asked, asked.readLastEvent(r)
}

// startedWatch is a watch that the store has accepted.
type startedWatch struct {
	initial *store.List // nil if the watch resumes from a revision
	changes *changes
	first   store.Batch // the batch already taken from changes
	// again has the changes of the revision to resume from, if there is more than one:
	// a client takes the resourceVersion of each event as its position, and may have
	// lost its stream in the middle of a transaction.
	again []store.Event
}

func (k *watched) beginWatch(ctx context.Context, asked *watchRequest) (*startedWatch, error) {
	if asked.after > 0 {
		return k.resumeWatch(ctx, asked)
	}
	ctx1, cancel := context.WithTimeout(ctx, k.opts.RequestTimeout)
	defer cancel()
	ctx1, done := wire.Waiting(ctx1, asked.fresh, k.opts.RevisionTimeout)
	defer done()
	list, err := k.opts.Reads.List(ctx1, asked.scope, store.ListOptions{AtLeast: asked.fresh})
	if err != nil {
		return nil, err
	}
	if asked.changes {
		list = &store.List{Revision: list.Revision}
	}
	watcher, err := k.opts.Reads.Watch(ctx, asked.scope, list.Revision)
	if err != nil {
		return nil, err
	}
	return &startedWatch{initial: list, changes: changesOf(watcher)}, nil
}

// resumeWatch waits for the first batch, because a store may find out only then
// that the revision has expired.
func (k *watched) resumeWatch(ctx context.Context, asked *watchRequest) (*startedWatch, error) {
	watcher, err := k.opts.Reads.Watch(ctx, asked.scope, asked.after)
	if err != nil {
		return nil, err
	}
	if err := watcher.RequestProgress(ctx); err != nil {
		return nil, err
	}
	begun := &startedWatch{changes: changesOf(watcher)}
	if begun.first, err = begun.changes.first(ctx, k.opts.RequestTimeout); err != nil {
		return nil, err
	}
	begun.again, err = k.again(asked)
	return begun, err
}

// again returns the changes of the revision to resume from. It fails if that
// revision has expired since the watch began.
func (k *watched) again(asked *watchRequest) ([]store.Event, error) {
	reads, ok := k.opts.Reads.(store.Repeater)
	if !ok || asked.whole {
		return nil, nil
	}
	events, err := reads.Repeat(asked.scope, asked.after)
	if len(events) < 2 {
		return nil, err
	}
	return events, nil
}

func errNoHead() error {
	return wire.BadRequest("watch: HEAD has no body, and a watch is a body; send GET")
}
