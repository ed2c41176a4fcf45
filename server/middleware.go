package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/pilot-api/pilot-api/server/inspect"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// requestIDHeader carries the id that ties an answer to a log line.
const requestIDHeader = "X-Request-Id"

// identify gives every request an id. It keeps the client's id if that has at most
// 64 visible characters.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if id == "" || len(id) > 64 || strings.ContainsFunc(id, invisible) {
			id = s.ids.next()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, wire.WithID(r, id))
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

func (s *Server) logRequest(r *http.Request, code, bytes int, took time.Duration) {
	level := logLevel(r, code)
	if !s.opts.Log.Enabled(r.Context(), level) {
		return // Polls skip the cost of a line that is not logged.
	}
	s.opts.Log.LogAttrs(r.Context(), level, "request",
		slog.String("method", wire.Short(r.Method, wire.MostLogged)), slog.String("path", wire.Short(logged(r), wire.MostLogged)),
		slog.Int("status", code), slog.Int("bytes", bytes),
		slog.Duration("took", took), slog.String("id", wire.RequestID(r)))
}

// logged returns the path with its query. It leaves out the query of questions
// about a request, which may contain somebody's cookie.
func logged(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, inspect.ProxiesPath+"/") {
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
	if code < 400 && wire.IsRead(r) {
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
			s.opts.Log.ErrorContext(r.Context(), "panic in a handler", "panic", wire.Short(fmt.Sprint(v), wire.MostLogged), "id", wire.RequestID(r), "stack", string(debug.Stack()))
			if answered(w) {
				panic(http.ErrAbortHandler)
			}
			s.fail(w, r, fmt.Errorf("panic: %v", v))
		}()
		next.ServeHTTP(w, r)
	})
}

// handle answers with a Status if h fails.
func (s *Server) handle(h wire.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// bounded is handle for all requests except watches. It sets a deadline, which is
// the server's or a shorter one from ?timeout=, and compresses large answers.
func (s *Server) bounded(h wire.Handler) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		timeout, err := wire.DurationParam(wire.Query(r), "timeout", s.opts.RequestTimeout)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(timeout, s.opts.RequestTimeout))
		defer cancel()
		s.warnOfOutage(w, r)
		return s.pacer.Compressed(h)(w, r.WithContext(ctx))
	})
}

// checkURL refuses what would otherwise be ignored: a query that cannot be read, an
// empty name in the path, and a condition on a request that is not for one object.
func (s *Server) checkURL(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(chi.RouteContext(r.Context()).URLParams.Values, "") {
			s.noSuchPath(w, r)
			return
		}
		if err := checkConditions(r); err != nil {
			s.fail(w, r, err)
			return
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			s.fail(w, r, wire.BadRequest("query %q: %v", r.URL.RawQuery, err))
			return
		}
		wire.SetQuery(r, query)
		next.ServeHTTP(w, r)
	})
}

// checkConditions refuses conditions that the request would ignore.
func checkConditions(r *http.Request) error {
	if wire.IsRead(r) {
		return nil
	}
	match, noneMatch, one := r.Header["If-Match"], r.Header["If-None-Match"], wire.PathParam(r, "name") != ""
	switch {
	case match != nil && !one:
		return wire.BadRequest("If-Match: is for writes to one object")
	case noneMatch != nil && !(one && r.Method == http.MethodPut && strings.TrimSpace(strings.Join(noneMatch, ",")) == "*"):
		return wire.BadRequest("If-None-Match: is for reads, and as * for the PUT of one object that is to be new")
	case noneMatch != nil && match != nil:
		return wire.BadRequest("If-Match and If-None-Match: an object cannot be there and be new")
	}
	return nil
}

// warnOfOutage warns that an answer with whatever state is at hand has the last known
// one.
func (s *Server) warnOfOutage(w http.ResponseWriter, r *http.Request) {
	if !wire.IsRead(r) || wire.Query(r).Get("resourceVersion") != "0" {
		return
	}
	if o, out := store.OutageOf(s.opts.Reads); out {
		wire.AddWarning(w, o.Warning())
	}
}

// answered reports whether the head of the answer was sent.
func answered(w http.ResponseWriter) bool {
	ww := observed(w)
	return ww != nil && ww.Status() != 0
}

// observed returns the writer by which observe knows the answer; nil if there is none.
func observed(w http.ResponseWriter) middleware.WrapResponseWriter {
	for {
		if ww, ok := w.(middleware.WrapResponseWriter); ok {
			return ww
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = inner.Unwrap()
	}
}
