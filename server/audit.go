package server

import (
	"net"
	"net/http"
	"time"

	"github.com/pilot-api/pilot-api/security/audit"
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
			ID: wire.RequestID(r), Source: host, UserAgent: wire.Short(r.UserAgent(), mostAudited),
			Path: wire.Short(r.URL.EscapedPath(), mostAudited),
		}
		rec := &recording{event: e}
		r = r.WithContext(withRecording(r.Context(), rec))
		aw := &auditedWriter{ResponseWriter: w, strict: s.opts.Audit.IsStrict(), rec: rec}
		aw.write = func(stage string) error {
			s.describe(r, e)
			e.Stage, e.Time, e.Code, e.Took = stage, time.Now().UTC(), aw.code, float64(time.Since(start).Microseconds())/1000
			if rec.wanted.Level == "" { // It was refused before its right was looked up.
				rec.wanted = s.opts.Audit.Decide(e)
			}
			if _, ours := s.routeRight(r); !ours && !e.IsRefusal() || !rec.wanted.IsWanted(e) {
				return nil
			}
			e.Level = rec.wanted.Level
			if e.Level == audit.LevelNone {
				e.Level = audit.LevelMetadata // A refusal.
			}
			if stage == audit.StageComplete {
				rec.addObjects(r, aw.code, aw.Header())
			}
			return s.opts.Audit.Write(r.Context(), e)
		}
		defer aw.end()
		next.ServeHTTP(aw, r)
		aw.finish()
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
	wanted := s.opts.Audit.Decide(&begun)
	if begun.Level = wanted.Level; wire.IsRead(r) || !wanted.IsWanted(&begun) {
		return nil
	}
	if err := s.opts.Audit.Write(r.Context(), &begun); err != nil {
		s.opts.Log.Error("a request is refused, because it cannot be written down", "error", err, "id", wire.RequestID(r))
		return wire.Failure(http.StatusInsufficientStorage, "InsufficientStorage",
			"nothing was changed: the audit log cannot be written, and the server may do nothing that is not in it")
	}
	return nil
}
