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
// The server ends every batch of its store with a bookmark, and sends one as
// soon as a new watch has caught up. So a bookmark tells that all revisions up
// to its own are complete: events are held until then and a transaction is
// never split. It also makes progress something that can be asked for: hang up
// and watch again from where we are.
type stream struct {
	client *Client
	scope  store.Scope
	out    chan store.Batch

	mu sync.Mutex
	// last is the newest revision handed over. Only run changes it.
	last int64
	// catchingUp until the first bookmark of a response; again when progress
	// was asked for in the meantime, perhaps too late for that bookmark.
	catchingUp, again bool
	hangUp            context.CancelCauseFunc

	store.TerminalError
}

// errProgress is the cause of hanging up to ask for progress.
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

// open asks for the changes after the last revision handed over.
func (s *stream) open(ctx context.Context) (*frames, context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.catchingUp, s.again, s.hangUp = true, false, cancel
	query := InScope(s.scope).query()
	query.Set("watch", "true")
	query.Set("resourceVersion", strconv.FormatInt(s.last, 10))
	query.Set("allowWatchBookmarks", "true")
	query.Set("statusEvents", "false")  // A batch is a change of the store.
	query.Set("wholeRevisions", "true") // None is handed over in parts.
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

// watchURL is that of one kind, or of all that are known here.
func (c *Client) watchURL(scope store.Scope, query url.Values) string {
	if scope.Kind != nil {
		return c.url(scope.Kind, scope.Namespace, "", query)
	}
	query.Del("watch") // It is nothing else.
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

// follow hands over batches until the watch fails or ctx ends.
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

// read hands over what one response brings. What it still held at the end is
// asked for again by the next one.
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
			if err := s.complete(ctx, fr, waiting.take(len(waiting.events))); err != nil {
				return err
			}
		default:
			e, err := fr.event(s.scope.Kind)
			if err != nil {
				return err
			}
			if err := waiting.add(e); err != nil {
				return err
			}
		}
	}
}

// complete hands over all up to a bookmark.
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
