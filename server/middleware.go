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

	"github.com/pilot-api/pilot-api/server/wire"
)

// requestIDHeader carries the id that ties an answer to a log line.
const requestIDHeader = "X-Request-Id"

// requestNotes holds what the server records about a request.
type requestNotes struct {
	id    string
	query url.Values // parsed once by checkURL
}

type requestNotesKey struct{}

// identify gives every request an id. It keeps the client's id if that has at most
// 64 visible characters.
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

// requestIDs generates unique ids: a random prefix for each server, and a counter.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: rand.Text()[:10] + "-"} }

func (n *requestIDs) next() string {
	return n.prefix + strconv.FormatUint(n.last.Add(1), 10)
}

func invisible(c rune) bool { return c <= ' ' || c > '~' }

// notesOf returns the notes of a request that went through identify.
func notesOf(r *http.Request) *requestNotes {
	return r.Context().Value(requestNotesKey{}).(*requestNotes)
}

func requestID(r *http.Request) string { return notesOf(r).id }

// queryOf returns the query of a request that went through checkURL. Do not change
// it.
func queryOf(r *http.Request) url.Values { return notesOf(r).query }

// observe logs and counts a request when it has ended.
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

// mostLogged bounds each text of a request in a line of the log, in bytes.
const mostLogged = 1 << 10

func (s *Server) logRequest(r *http.Request, code, bytes int, took time.Duration) {
	level := logLevel(r, code)
	if !s.opts.Log.Enabled(r.Context(), level) {
		return // Polls skip the cost of a line that is not logged.
	}
	s.opts.Log.LogAttrs(r.Context(), level, "request",
		slog.String("method", wire.Short(r.Method, mostLogged)), slog.String("path", wire.Short(logged(r), mostLogged)),
		slog.Int("status", code), slog.Int("bytes", bytes),
		slog.Duration("took", took), slog.String("id", requestID(r)))
}

// logged returns the path with its query. It leaves out the query of questions
// about a request, which may contain somebody's cookie.
func logged(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, proxiesPath+"/") {
		return r.URL.EscapedPath()
	}
	return r.URL.RequestURI()
}

// routeOf returns the matched pattern, which unlike the path has few values.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" && !strings.HasSuffix(pattern, "*") {
		return pattern
	}
	return "none"
}

// logLevel returns LevelDebug for frequent requests of machines and for reads.
// Changes and failures get LevelInfo, except failures of polls, which have their
// own line.
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

// recoverPanic turns a panic into a 500. If the answer has already begun, it cuts
// the connection, so that no client takes half an answer for a whole one.
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
			s.opts.Log.ErrorContext(r.Context(), "panic in a handler", "panic", wire.Short(fmt.Sprint(v), mostLogged), "id", requestID(r), "stack", string(debug.Stack()))
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

// handler is an HTTP handler that returns its failure to the caller.
type handler func(http.ResponseWriter, *http.Request) error

// handle answers with a Status if h fails.
func (s *Server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// bounded is handle for all requests except watches. It sets a deadline, which is
// the server's or a shorter one from ?timeout=, and compresses large answers.
func (s *Server) bounded(h handler) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		timeout, err := wire.DurationParam(queryOf(r), "timeout", s.opts.RequestTimeout)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(timeout, s.opts.RequestTimeout))
		defer cancel()
		s.warnOfOutage(w, r)
		return s.compressed(h)(w, r.WithContext(ctx))
	})
}
