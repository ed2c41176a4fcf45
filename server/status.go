package server

import (
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
)

// Answers add a status to objects, which is not stored: how they stand with the
// proxies (docs/decisions/019-feedback.md).

// board returns the recent statuses, or nil if objects have none.
func (s *Server) board() *status.Table {
	if s.statuses == nil {
		return nil
	}
	return s.statuses.Recent()
}

// stateOf returns the state that a list of a revision shows.
func stateOf(t *status.Table, revision string) listState {
	if t == nil {
		return listState{revision: revision}
	}
	return listState{revision: revision, board: t.Version(), published: t.Revision()}
}

// withStatus returns an object's JSON with its status. Do not change it: it may be
// shared. The stored JSON has no status.
func (s *Server) withStatus(o *schema.Object) []byte {
	if s.statuses == nil {
		return o.JSON()
	}
	return s.frames.of(s.statuses.Recent(), o)
}

func withStatus(o *schema.Object, status []byte) []byte {
	if status == nil {
		return o.JSON()
	}
	return appendWithStatus(make([]byte, 0, sizeWithStatus(o, status)), o, status)
}

const statusField = `,"status":`

func sizeWithStatus(o *schema.Object, status []byte) int {
	if status == nil {
		return len(o.JSON())
	}
	return len(o.JSON()) + len(statusField) + len(status)
}

func appendWithStatus(out []byte, o *schema.Object, status []byte) []byte {
	raw := o.JSON()
	if status == nil {
		return append(out, raw...)
	}
	out = append(out, raw[:len(raw)-1]...)
	out = append(out, statusField...)
	out = append(out, status...)
	return append(out, '}')
}
