package render

import (
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/store"
)

// Answers add a status to objects, which is not stored: how they stand with the
// proxies (docs/decisions/019-feedback.md).

// Statuses are the statuses that answers add to objects.
type Statuses struct {
	Board *status.Board // nil if objects have none
	// Stored tells whether objects have statuses from the store. If so, answers show those.
	// Nil means that they never have.
	Stored store.StatusReader
	frames frames
}

// AreStored reports whether answers show the statuses that objects have from the store.
func (s *Statuses) AreStored() bool { return s.Stored != nil && s.Stored.ShowsStatuses() }

// Recent returns the statuses that answers show, or nil if objects have none.
func (s *Statuses) Recent() *status.Table {
	switch {
	case s.AreStored():
		return status.Stored
	case s.Board == nil:
		return nil
	}
	return s.Board.Recent()
}

// Live returns the statuses as the replicas know them now, whatever is stored.
func (s *Statuses) Live() *Statuses { return &Statuses{Board: s.Board} }

// WithStatus returns an object's JSON with its status, in the version of the
// resource. Do not change it: it may be shared. The stored JSON has no status.
func (k *Resource) WithStatus(o *schema.Object) []byte {
	table := k.Recent()
	if table == nil || o.Kind.Flat {
		return k.JSON(o)
	}
	return k.frames.of(table, o, k.VersionOf(o))
}

// WithStatus returns an object's JSON in a version with a status; a nil status is none. Do
// not change the result: it may be shared.
func WithStatus(o *schema.Object, version string, status []byte) []byte {
	if status == nil {
		return o.JSONIn(version)
	}
	return AppendWithStatus(make([]byte, 0, SizeWithStatus(o, version, status)), o, version, status)
}

const statusField = `,"status":`

// SizeWithStatus returns the length of WithStatus, in bytes.
func SizeWithStatus(o *schema.Object, version string, status []byte) int {
	size := o.LengthIn(version)
	if status != nil {
		size += len(statusField) + len(status)
	}
	return size
}

// AppendWithStatus appends WithStatus to out.
func AppendWithStatus(out []byte, o *schema.Object, version string, status []byte) []byte {
	out = o.AppendJSONIn(out, version)
	if status == nil {
		return out
	}
	out = append(out[:len(out)-1], statusField...)
	out = append(out, status...)
	return append(out, '}')
}
