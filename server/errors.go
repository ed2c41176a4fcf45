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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// fail answers a failed request: the client gets a Status, the log gets the cause.
// Every failure ends here.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
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
		_ = writeText(w, int(status.Code), f, body)
	}
}

// harmless returns a Status whose texts cannot steer the terminal of a client that prints
// them. Its causes and message repeat what a request said.
func harmless(status *metav1.Status) *metav1.Status {
	safe := status.DeepCopy()
	safe.Message = terminal.Escape(safe.Message)
	if safe.Details == nil {
		return safe
	}
	safe.Details.Name = terminal.Line(safe.Details.Name)
	for i := range safe.Details.Causes {
		cause := &safe.Details.Causes[i]
		cause.Field, cause.Message = terminal.Line(cause.Field), terminal.Escape(cause.Message)
	}
	return safe
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
		slog.String("method", wire.Short(r.Method, mostLogged)), slog.String("path", wire.Short(r.URL.Path, mostLogged)),
		slog.Int("status", int(status.Code)), slog.String("error", wire.Short(store.Logged(err).String(), 4*mostLogged)),
		slog.String("id", requestID(r)))
}

// statusOf returns the Status of any failure. Failures of the request are
// apierrors.StatusErrors already. Any other failure is the store's, even if its
// cause is a StatusError.
func statusOf(err error) *metav1.Status {
	status := store.ToStatus(err)
	var known apierrors.APIStatus
	var own *store.Error
	if !errors.As(err, &own) && errors.As(err, &known) {
		st := known.Status()
		status = &st
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return harmless(status)
}

// refused returns the failure for an object with problems: 400 if its text could
// not be read at all, otherwise 422 with a cause for each field.
func refused(problems diag.List) error {
	errs := problems.Errors()
	failure := &store.Error{Kind: store.ErrInvalid, Problems: errs}
	for _, p := range errs {
		if p.Reason == diag.Malformed {
			status := store.ToStatus(failure)
			status.Code, status.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
			return &apierrors.StatusError{ErrStatus: *status}
		}
		if (p.Object != diag.Ref{}) {
			failure.Key = schema.Key(p.Object)
		}
	}
	return failure
}

func (s *Server) noSuchPath(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"there is no path %s here: / lists the paths, /apis and /apis/{group}/{version} the kinds of objects", r.URL.Path))
}

// methods are the methods of the server, in the order of an Allow header.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// statusIsComputed refuses a write of an object's status. A write of the whole
// object ignores the status in it.
func statusIsComputed(w http.ResponseWriter, r *http.Request) error {
	const allow = "GET, HEAD"
	w.Header().Set("Allow", allow)
	return wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"%s is not possible on %s, only %s: the status is computed from what the proxies acknowledge, and stored nowhere", r.Method, r.URL.Path, allow)
}

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
