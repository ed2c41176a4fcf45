package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// fail answers a failed request: the client gets a Status, the log gets the cause.
// Every failure ends here.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := wire.StatusOf(err)
	if status.Code >= 500 && errors.Is(r.Context().Err(), context.Canceled) {
		status.Code = statusClientGone
	}
	s.logFailure(r, status, err)
	if answered(w) {
		// It is too late for a Status, so the connection is cut.
		panic(http.ErrAbortHandler)
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	f, negErr := wire.Negotiate(r, wire.JSON, wire.YAML)
	if negErr != nil {
		f = wire.JSON
	}
	if body, err := json.Marshal(status); err == nil {
		_ = answer.WriteText(w, int(status.Code), f, body)
	}
}

// statusClientGone is the code in logs and metrics for a failure that follows from
// the client's hanging up. The client never sees it. nginx introduced the number.
const statusClientGone = 499

// logFailure logs the failures that the operator must fix. A client finds its own
// mistakes in the answer.
func (s *Server) logFailure(r *http.Request, status *metav1.Status, err error) {
	if status.Code < 500 {
		return
	}
	level := slog.LevelWarn // It may pass without a change here.
	if status.Code == http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.opts.Log.LogAttrs(r.Context(), level, "request failed",
		slog.String("method", wire.Short(r.Method, wire.MostLogged)), slog.String("path", wire.Short(r.URL.Path, wire.MostLogged)),
		slog.Int("status", int(status.Code)), slog.String("error", wire.Short(store.Logged(err).String(), 4*wire.MostLogged)),
		slog.String("id", wire.RequestID(r)))
}

func (s *Server) noSuchPath(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"there is no path %s here: / lists the paths, /apis and /apis/{group}/{version} the kinds of objects", r.URL.Path))
}

// methods are the methods of the server, in the order of an Allow header.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func (s *Server) noSuchMethod(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range methods {
		routed := m
		if m == http.MethodHead {
			routed = http.MethodGet // As middleware.GetHead routes it.
		}
		if s.router.Match(chi.NewRouteContext(), routed, r.URL.Path) {
			allowed = append(allowed, m)
		}
	}
	allow := strings.Join(allowed, ", ")
	w.Header().Set("Allow", allow)
	s.fail(w, r, wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"%s is not possible on %s, only %s", r.Method, r.URL.Path, allow))
}
