package server

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// mostAudited bounds a text of a client in an event, in bytes.
const mostAudited = 512

// audited writes down what a request did, as far as the policy wants it.
func (s *Server) audited(next http.Handler) http.Handler {
	if s.opts.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			if !s.opts.Audit.IsWanted(e) {
				return nil
			}
			return s.opts.Audit.Write(r.Context(), e)
		}
		if s.opts.Audit.IsStrict() {
			next.ServeHTTP(&heldWriter{ResponseWriter: w, complete: complete}, r)
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
	if row.resource == "" && r.Method == http.MethodPost {
		e.Verb = "create"
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

// Unwrap is for http.ResponseController.
func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.refused {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
}
