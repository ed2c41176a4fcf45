package server

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pilot-api/pilot-api/store"
)

// watch answers ?watch=true on a collection. Whatever can fail, fails before
// the stream begins, with a real status code; a compacted revision is a 410.
func (k *resource) watch(w http.ResponseWriter, r *http.Request) error {
	asked, err := k.watchRequest(r)
	if err != nil {
		return err
	}
	select {
	case k.watches <- struct{}{}:
		defer func() { <-k.watches }()
	default:
		return apierrors.NewTooManyRequests("too many watches are running", 1)
	}
	k.metrics.watchers.Inc()
	defer k.metrics.watchers.Dec()

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	begun, err := k.beginWatch(ctx, asked)
	if err != nil {
		return err
	}
	stream := newStream(w, k, asked)
	return stream.run(ctx, begun)
}

// watchRequest is what the query of a watch asks for.
type watchRequest struct {
	scope    store.Scope
	selected selection
	// after is the resourceVersion to go on from. At 0 the watch begins with
	// the state at hand as ADDED events, as fresh as fresh says.
	after     int64
	fresh     int64
	bookmarks bool
	timeout   time.Duration // 0: none
	events    eventEncoder
}

func (k *resource) watchRequest(r *http.Request) (*watchRequest, error) {
	f, err := negotiate(r, formatJSON, formatTable)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	if err := checkParams(q, listParams); err != nil {
		return nil, err
	}
	if q.Get("sendInitialEvents") != "" || q.Get("resourceVersionMatch") != "" {
		return nil, errNoInitialEvents(q.Get("sendInitialEvents"))
	}
	asked := &watchRequest{}
	if asked.fresh, err = atLeastParam(q); err != nil {
		return nil, err
	}
	if asked.fresh > 0 {
		asked.after = asked.fresh
	}
	if asked.selected, err = selectionOf(q); err != nil {
		return nil, err
	}
	asked.scope = asked.selected.narrow(k.scope(r))
	if asked.bookmarks, err = boolParam(q, "allowWatchBookmarks"); err != nil {
		return nil, err
	}
	seconds, err := countParam(q, "timeoutSeconds")
	if err != nil {
		return nil, err
	}
	asked.timeout = time.Duration(seconds) * time.Second
	include, err := includeObjectParam(r)
	asked.events = eventEncoder{k: k, format: f, include: include}
	return asked, err
}

// errNoInitialEvents is what a Kubernetes server without streaming lists
// answers; clients then list and watch.
func errNoInitialEvents(value string) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"),
			"streaming lists ("+value+") and resourceVersionMatch are not possible for a watch: list first, then watch from the list's resourceVersion"),
	})
}

// begun is a watch that the store has accepted.
type begun struct {
	initial *store.List // nil when the watch goes on from a revision
	watcher store.Watcher
	first   store.Batch // already taken from the watcher
}

func (k *resource) beginWatch(ctx context.Context, asked *watchRequest) (*begun, error) {
	if asked.after > 0 {
		return k.resumeWatch(ctx, asked)
	}
	ctx1, cancel := context.WithTimeout(ctx, k.opts.RequestTimeout)
	defer cancel()
	list, err := k.opts.Reads.List(ctx1, asked.scope, store.ListOptions{AtLeast: asked.fresh})
	if err != nil {
		return nil, err
	}
	watcher, err := k.opts.Reads.Watch(ctx, asked.scope, list.Revision)
	return &begun{initial: list, watcher: watcher}, err
}

// resumeWatch waits for the first sign of life, because a store may find out
// only then that the revision is gone.
func (k *resource) resumeWatch(ctx context.Context, asked *watchRequest) (*begun, error) {
	watcher, err := k.opts.Reads.Watch(ctx, asked.scope, asked.after)
	if err != nil {
		return nil, err
	}
	if err := watcher.RequestProgress(ctx); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(k.opts.RequestTimeout)
	defer timeout.Stop()
	select {
	case batch, ok := <-watcher.Batches():
		if !ok {
			return nil, watcher.Err()
		}
		return &begun{watcher: watcher, first: batch}, nil
	case <-timeout.C:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stream writes one watch to one client. It keeps nothing but one batch and a
// small buffer: a client that does not read holds up its own watcher until the
// store cuts that off, or the write deadline this connection.
type stream struct {
	*watchRequest
	out  *bufio.Writer
	conn *http.ResponseController
	k    *resource

	revision   int64 // everything up to here was written
	bookmarked int64 // the newest revision that the client knows of
}

func newStream(w http.ResponseWriter, k *resource, asked *watchRequest) *stream {
	conn := http.NewResponseController(w)
	// The request is read; its read deadline would end the watch.
	_ = conn.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", asked.events.format.contentType())
	out := &deadlineWriter{w: w, conn: conn, timeout: k.opts.WatchWriteTimeout}
	return &stream{watchRequest: asked, out: bufio.NewWriterSize(out, 8<<10), conn: conn, k: k}
}

// deadlineWriter gives every write to the connection its own deadline.
type deadlineWriter struct {
	w       http.ResponseWriter
	conn    *http.ResponseController
	timeout time.Duration
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	if err := d.conn.SetWriteDeadline(time.Now().Add(d.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return d.w.Write(p)
}

// run writes until the client goes, its time is over, the server stops or the
// watch fails. Its error is nil: the stream has begun, so what failed was told
// inside of it.
func (s *stream) run(ctx context.Context, b *begun) error {
	if s.writeBegin(b) != nil || s.settle() != nil {
		return nil
	}
	bookmarks := time.NewTicker(s.k.opts.BookmarkInterval)
	defer bookmarks.Stop()
	end := make(<-chan time.Time)
	if s.timeout > 0 {
		timer := time.NewTimer(s.timeout)
		defer timer.Stop()
		end = timer.C
	}
	for {
		select {
		case batch, ok := <-b.watcher.Batches():
			if !ok {
				s.writeEnd(b.watcher.Err())
				return nil
			}
			if s.writeBatches(b.watcher, batch) != nil {
				return nil
			}
		case <-bookmarks.C:
			s.askBookmark(ctx, b.watcher)
		case <-end:
			s.writeEnd(nil)
			return nil
		case <-s.k.stopping:
			s.writeEnd(nil)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *stream) writeBegin(b *begun) error {
	if b.initial == nil {
		return s.writeBatch(b.first)
	}
	for _, o := range b.initial.Items {
		if err := s.writeEvent(store.Event{Type: store.Added, Object: o}); err != nil {
			return err
		}
	}
	s.revision = b.initial.Revision
	return nil
}

// maxRun bounds the batches between two flushes, and so between two looks at
// the clock.
const maxRun = 64

// writeBatches writes a batch and those that are ready behind it, and settles
// when the queue runs dry.
func (s *stream) writeBatches(watcher store.Watcher, batch store.Batch) error {
	for range maxRun {
		if err := s.writeBatch(batch); err != nil {
			return err
		}
		var ok bool
		select {
		case batch, ok = <-watcher.Batches():
			if !ok {
				return s.settle() // Run sees the end too, and tells it.
			}
		default:
			return s.settle()
		}
	}
	if err := s.writeBatch(batch); err != nil {
		return err
	}
	return s.settle()
}

func (s *stream) writeBatch(batch store.Batch) error {
	for _, e := range batch.Events {
		if err := s.writeEvent(e); err != nil {
			return err
		}
	}
	s.revision = batch.Revision
	return nil
}

// settle ends a run of whole batches: a client that asked for bookmarks is told
// that the revisions before it are complete, so that it can keep a transaction
// together, and so is one that just waits to have caught up.
func (s *stream) settle() error {
	if s.bookmarks {
		if err := s.writeBookmark(); err != nil {
			return err
		}
	}
	return s.flush()
}

func (s *stream) writeEvent(e store.Event) error {
	e, ok, err := s.selected.event(e)
	if err != nil || !ok {
		return err
	}
	s.bookmarked = e.Object.Revision()
	return s.events.event(s.out, string(e.Type), e.Object)
}

// askBookmark has the watcher prove how far it is; the proof is a batch, if an
// empty one, and a bookmark follows every run of batches.
func (s *stream) askBookmark(ctx context.Context, watcher store.Watcher) {
	if !s.bookmarks {
		return
	}
	if err := watcher.RequestProgress(ctx); err != nil {
		s.k.opts.Log.DebugContext(ctx, "no bookmark: the watch cannot tell its progress", "error", err)
	}
}

func (s *stream) writeBookmark() error {
	s.bookmarked = s.revision
	return s.events.bookmark(s.out, s.revision)
}

// writeEnd ends the stream so that the client knows where to go on: with a
// last bookmark, and with an ERROR event if it must list again. A watch that
// was cut off for being slow, or whose store is away, can simply be resumed.
func (s *stream) writeEnd(err error) {
	if s.bookmarks && s.revision > s.bookmarked {
		_ = s.writeBookmark()
	}
	resumable := err == nil || errors.Is(err, store.ErrSlow) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled)
	if !resumable {
		_ = s.events.failure(s.out, statusOf(err))
	}
	if err != nil {
		s.k.opts.Log.Info("watch ended", "kind", s.k.kind.Kind, "revision", s.revision, "error", err)
	}
	_ = s.flush()
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.conn.Flush()
}
