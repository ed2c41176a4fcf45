package server

import (
	"net/http"

	"github.com/pilot-api/pilot-api/store"
)

// outage returns the present outage of the store, if its reader knows of one.
func (s *Server) outage() (store.Outage, bool) {
	if f, ok := s.opts.Reads.(store.Follower); ok {
		return f.Outage()
	}
	return store.Outage{}, false
}

// checkStore refuses at once what needs a store that answers.
func (s *Server) checkStore() error {
	if o, out := s.outage(); out {
		return &store.Error{Kind: store.ErrUnavailable, Detail: o.String()}
	}
	return nil
}

// checkWritable refuses a write at once if the store does not answer.
func (s *Server) checkWritable() error {
	if o, out := s.outage(); out {
		return &store.Error{Kind: store.ErrUnavailable, Detail: "nothing was written: " + o.String()}
	}
	return nil
}

// warnOfOutage warns that an answer with whatever state is at hand has the last known
// one.
func (s *Server) warnOfOutage(w http.ResponseWriter, r *http.Request) {
	if !isRead(r) || queryOf(r).Get("resourceVersion") != "0" {
		return
	}
	if o, out := s.outage(); out {
		addWarning(w, o.Warning())
	}
}
