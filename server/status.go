package server

import (
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
)

// Answers add a status to objects, which is not stored: how they stand with the
// proxies (docs/decisions/019-feedback.md).

// statuses are the statuses that answers add to objects.
type statuses struct {
	Board  *status.Board // nil if objects have none
	frames frames
}

// recent returns the recent statuses, or nil if objects have none.
func (s *statuses) recent() *status.Table {
	if s.Board == nil {
		return nil
	}
	return s.Board.Recent()
}

// withStatus returns an object's JSON with its status, in the version of the
// resource. Do not change it: it may be shared. The stored JSON has no status.
func (k *shown) withStatus(o *schema.Object) []byte {
	if k.Board == nil {
		return k.json(o)
	}
	return k.frames.of(k.Board.Recent(), o, k.versionOf(o))
}

func withStatus(o *schema.Object, version string, status []byte) []byte {
	if status == nil {
		return o.JSONIn(version)
	}
	return appendWithStatus(make([]byte, 0, sizeWithStatus(o, version, status)), o, version, status)
}

const statusField = `,"status":`

func sizeWithStatus(o *schema.Object, version string, status []byte) int {
	size := o.LengthIn(version)
	if status != nil {
		size += len(statusField) + len(status)
	}
	return size
}

func appendWithStatus(out []byte, o *schema.Object, version string, status []byte) []byte {
	out = o.AppendJSONIn(out, version)
	if status == nil {
		return out
	}
	out = append(out[:len(out)-1], statusField...)
	out = append(out, status...)
	return append(out, '}')
}
