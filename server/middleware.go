package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// requestIDHeader carries the id that ties an answer to a log line.
const requestIDHeader = "X-Request-Id"

// requestNotes is what is known of one request beside its own fields.
type requestNotes struct {
	id    string
	query url.Values // parsed by checkURL, once
}

type requestNotesKey struct{}

// identify gives every request an id: the client's, if it sent one of up to 64
// characters that can be seen.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if id == "" || len(id) > 64 || strings.ContainsFunc(id, invisible) {
			id = s.ids.next()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestNotesKey{}, &requestNotes{id: id})))
	})
}

// requestIDs are ids that nobody else makes: of a server one after the other.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: rand.Text()[:10] + "-"} }

func (n *requestIDs) next() string {
	return n.prefix + strconv.FormatUint(n.last.Add(1), 10)
}

func invisible(c rune) bool { return c <= ' ' || c > '~' }

// notesOf a request that went through identify.
func notesOf(r *http.Request) *requestNotes {
	return r.Context().Value(requestNotesKey{}).(*requestNotes)
}

func requestID(r *http.Request) string { return notesOf(r).id }

// queryOf is the query of a request that went through checkURL. It is for
// reading only.
func queryOf(r *http.Request) url.Values { return notesOf(r).query }

// observe logs and counts a request once it is over.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			took, code := time.Since(start), ww.Status()
			if code == 0 {
				code = http.StatusOK
			}
			s.metrics.request(r.Method, routeOf(r), code, took)
			s.logRequest(r, code, ww.BytesWritten(), took)
		}()
		next.ServeHTTP(ww, r)
	})
}

func (s *Server) logRequest(r *http.Request, code, bytes int, took time.Duration) {
	level := logLevel(r, code)
	if !s.opts.Log.Enabled(r.Context(), level) {
		return // A poll should not pay for a line that nobody reads.
	}
	s.opts.Log.LogAttrs(r.Context(), level, "request",
		slog.String("method", r.Method), slog.String("path", logged(r)),
		slog.Int("status", code), slog.Int("bytes", bytes),
		slog.Duration("took", took), slog.String("id", requestID(r)))
}

// logged is the path with its query, but for questions about a request: that may
// have anybody's cookie.
func logged(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, proxiesPath+"/") {
		return r.URL.EscapedPath()
	}
	return r.URL.RequestURI()
}

// routeOf is the pattern that matched, which unlike the path has few values.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" && !strings.HasSuffix(pattern, "*") {
		return pattern
	}
	return "none"
}

// logLevel keeps out of the log what machines ask every few seconds, and what
// people read. What changes something is there, and what fails: polls have a
// line of their own for that.
func logLevel(r *http.Request, code int) slog.Level {
	for _, prefix := range []string{"/v1/", "/v3/", "/healthz", "/readyz", "/metrics"} {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return slog.LevelDebug
		}
	}
	if code < 400 && isRead(r) {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// recoverPanic turns a panic into a 500, unless the answer has already begun:
// then the connection is cut, so that nobody takes half an answer for whole.
func (s *Server) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.opts.Log.ErrorContext(r.Context(), "panic in a handler", "panic", v, "id", requestID(r), "stack", string(debug.Stack()))
			if answered(w) {
				panic(http.ErrAbortHandler)
			}
			s.fail(w, r, fmt.Errorf("panic: %v", v))
		}()
		next.ServeHTTP(w, r)
	})
}

// answered reports whether the head of the answer was sent.
func answered(w http.ResponseWriter) bool {
	ww, ok := w.(middleware.WrapResponseWriter)
	return ok && ww.Status() != 0
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// handler is an HTTP handler that leaves its failure to the caller.
type handler func(http.ResponseWriter, *http.Request) error

// handle sends whatever h fails with as a Status.
func (s *Server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// bounded is handle for all but watches: with a deadline, the server's own or a
// shorter one that the client asks for with ?timeout=, and in gzip what is large.
func (s *Server) bounded(h handler) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		timeout, err := durationParam(queryOf(r), "timeout", s.opts.RequestTimeout)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(timeout, s.opts.RequestTimeout))
		defer cancel()
		return s.compressed(h)(w, r.WithContext(ctx))
	})
}
