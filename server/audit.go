package server

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/wire"
)

// mostAudited bounds a text of a client in an event, in bytes.
const mostAudited = 512

// audited writes down what a request did, as far as the policy wants it. It stands before all
// that may refuse a request, and before the recovery from a panic, so that the event has the
// code of the answer. Polls and questions about health are nobody's deeds.
func (s *Server) audited(next http.Handler) http.Handler {
	if s.opts.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest.IsPoll(r.URL.Path) || isHealth(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		e := &audit.Event{
			ID: wire.RequestID(r), Stage: audit.StageComplete, Source: host, UserAgent: wire.Short(r.UserAgent(), mostAudited),
			Path: wire.Short(r.URL.EscapedPath(), mostAudited),
		}
		r = r.WithContext(audit.NewContext(r.Context(), e))
		complete := func(code int) error {
			s.describe(r, e)
			e.Time, e.Code, e.Took = time.Now().UTC(), code, float64(time.Since(start).Microseconds())/1000
			if _, ours := s.routeRight(r); !ours && !e.IsRefusal() || !s.opts.Audit.IsWanted(e) {
				return nil
			}
			return s.opts.Audit.Write(r.Context(), e)
		}
		if s.opts.Audit.IsStrict() {
			held := &heldWriter{ResponseWriter: w, complete: complete}
			defer held.end()
			next.ServeHTTP(held, r)
			held.begin()
			return
		}
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			code := ww.Status()
			if code == 0 {
				code = http.StatusOK
			}
			_ = complete(code) // The log counts what it loses.
		}()
		next.ServeHTTP(ww, r)
	})
}

// describe adds what a request is about.
func (s *Server) describe(r *http.Request, e *audit.Event) {
	row, ok := s.routeRight(r)
	if !ok {
		row = right{}
	}
	asked := row.attributes(r)
	e.Verb, e.Group, e.Resource, e.Subresource = asked.Verb, asked.Group, asked.Resource, asked.Subresource
	e.Namespace, e.Name = wire.Short(asked.Namespace, mostAudited), wire.Short(asked.Name, mostAudited)
	switch {
	case row.resource != "":
	case r.Method == http.MethodPost:
		e.Verb = "create"
	case r.Method == http.MethodDelete:
		e.Verb = "delete"
	}
	e.DryRun = wire.Query(r).Get("dryRun") != ""
}

// received writes down that a request is about to be done, if the log is strict.
func (s *Server) received(r *http.Request) error {
	e := audit.Of(r.Context())
	if e == nil || !s.opts.Audit.IsStrict() {
		return nil
	}
	begun := *e
	s.describe(r, &begun)
	begun.Stage, begun.Time = audit.StageReceived, time.Now().UTC()
	if wire.IsRead(r) || !s.opts.Audit.IsWanted(&begun) {
		return nil
	}
	if err := s.opts.Audit.Write(r.Context(), &begun); err != nil {
		s.opts.Log.Error("a request is refused, because it cannot be written down", "error", err, "id", wire.RequestID(r))
		return wire.Failure(http.StatusInsufficientStorage, "InsufficientStorage",
			"nothing was changed: the audit log cannot be written, and the server may do nothing that is not in it")
	}
	return nil
}

// heldWriter holds back an answer until its event is on disk.
type heldWriter struct {
	http.ResponseWriter
	complete func(code int) error
	begun    bool
	refused  bool // the event could not be written: the answer is another one
}

// Unwrap is for http.ResponseController, which finds Flush here, and deadlines below.
func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError is for http.ResponseController. A flush begins the answer, as a write does.
func (w *heldWriter) FlushError() error {
	if w.begin(); w.refused {
		return errNotWrittenDown
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// errNotWrittenDown ends an answer whose event could not be written.
var errNotWrittenDown = errors.New("the event of the request cannot be written to the audit log")

// begin begins the answer if nothing else did.
func (w *heldWriter) begin() {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
}

// end writes the event of a request whose connection is cut before its answer begins.
func (w *heldWriter) end() {
	if !w.begun {
		w.begun = true
		_ = w.complete(http.StatusInternalServerError) // There is nobody to tell.
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *heldWriter) WriteHeader(code int) {
	if w.begun || code < 200 {
		if !w.begun {
			w.ResponseWriter.WriteHeader(code)
		}
		return
	}
	w.begun = true
	if err := w.complete(code); err == nil || code >= 400 {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.refused = true
	clear(w.Header())
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: "it may have been done: the audit log cannot be written, and the server may acknowledge nothing that is not in it",
	}
	body, _ := json.Marshal(status) // Texts always encode.
	_ = answer.WriteText(w.ResponseWriter, http.StatusInsufficientStorage, wire.JSON, body)
}

// Write implements http.ResponseWriter.
func (w *heldWriter) Write(text []byte) (int, error) {
	if w.begin(); w.refused {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
}
