package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// stream is a watch, over one response at a time.
//
// The server sends a bookmark after every batch of its store, and as soon as a new
// watch has caught up. So a bookmark shows that all revisions up to its own are
// complete. The stream holds events until then, so it never splits a transaction. To
// request progress, it closes the response and watches again from its last revision.
type stream struct {
	client *Client
	scope  store.Scope
	out    chan store.Batch

	mu sync.Mutex
	// last is the newest revision delivered. Only run changes it.
	last int64
	// catchingUp is set until the first bookmark of a response. again is set if
	// progress was requested in the meantime, perhaps too late for that bookmark.
	catchingUp, again bool
	hangUp            context.CancelCauseFunc

	store.TerminalError
}

// errProgress is the cause of closing a response to request progress.
var errProgress = errors.New("progress asked for")

func (c *Client) newStream(scope store.Scope, after int64) *stream {
	return &stream{client: c, scope: scope, last: after, out: make(chan store.Batch)}
}

func (s *stream) Batches() <-chan store.Batch { return s.out }

func (s *stream) RequestProgress(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catchingUp {
		s.again = true
		return nil
	}
	s.hangUp(errProgress)
	return nil
}

// open requests the changes after the last revision delivered.
func (s *stream) open(ctx context.Context) (*frames, context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.catchingUp, s.again, s.hangUp = true, false, cancel
	query := InScope(s.scope).query()
	query.Set("watch", "true")
	query.Set("resourceVersion", strconv.FormatInt(s.last, 10))
	query.Set("allowWatchBookmarks", "true")
	query.Set("statusEvents", "false")  // A batch is a change of the store.
	query.Set("wholeRevisions", "true") // No revision is sent in parts.
	s.mu.Unlock()
	resp, err := s.client.send(ctx, request{
		method: http.MethodGet,
		url:    s.client.watchURL(s.scope, query),
	})
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return newFrames(resp.Body, func() { cancel(nil) }), ctx, nil
}

// watchURL returns the URL of a watch of one kind, or of all kinds known here.
func (c *Client) watchURL(scope store.Scope, query url.Values) string {
	if scope.Kind != nil {
		return c.url(scope.Kind, scope.Namespace, "", query)
	}
	query.Del("watch") // The path has only watches.
	query.Set("kinds", strings.Join(schema.KindNames(), ","))
	if scope.Namespace != "" {
		query.Set("namespace", scope.Namespace)
	}
	return c.at(registry+"watch", query)
}

func (s *stream) run(ctx context.Context, f *frames, response context.Context) {
	s.End(s.follow(ctx, f, response))
	close(s.out)
}

// follow delivers batches until the watch fails or ctx ends.
func (s *stream) follow(ctx context.Context, f *frames, response context.Context) error {
	for {
		err := s.read(ctx, f)
		f.close()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, errProgress) && context.Cause(response) != errProgress:
			return err
		}
		if f, response, err = s.open(ctx); err != nil {
			return err
		}
	}
}

// read delivers the batches of one response. Events that it still holds at the end are
// requested again by the next response.
func (s *stream) read(ctx context.Context, f *frames) error {
	var waiting pendingEvents
	for {
		fr, err := f.next()
		if err != nil {
			return err
		}
		switch fr.Type {
		case store.ErrorFrame:
			return fr.failure()
		case store.BookmarkFrame:
			if err := s.complete(ctx, fr, waiting.takeAll()); err != nil {
				return err
			}
		default:
			e, err := fr.event(s.scope)
			if err != nil {
				return err
			}
			if err := waiting.add(e); err != nil {
				return err
			}
		}
	}
}

// complete delivers all events up to a bookmark.
func (s *stream) complete(ctx context.Context, fr frame, events []store.Event) error {
	revision, err := fr.bookmark()
	if err != nil {
		return err
	}
	select {
	case s.out <- store.Batch{Revision: revision, Events: events}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = revision
	s.catchingUp = false
	if s.again {
		return errProgress
	}
	return nil
}
