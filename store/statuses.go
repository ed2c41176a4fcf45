package store

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
)

// MaxStoredStatus is the largest JSON of a status that is stored, in bytes.
const MaxStoredStatus = 4 << 10

// StoredStatus is the status that a status revision gave to an object.
type StoredStatus struct {
	Key schema.Key
	// Of is the revision at which the object was written. The status does not count for
	// any other state of the object.
	Of int64
	// Revision is the status revision. It is the resourceVersion of the object from then
	// on, until the object is written or gets another status.
	Revision int64
	*schema.StatusText
}

// StatusRevision is the change of one status revision.
type StatusRevision struct {
	// Kept reports whether the store keeps statuses from now on.
	Kept bool
	// Moved are the statuses that changed, in no particular order.
	Moved []StoredStatus
}

// StatusKeeper is a Reader that may keep statuses.
type StatusKeeper interface {
	// Statuses returns the statuses as they were at a revision, and whether the store
	// kept any. The error is ErrExpired if the revision was compacted.
	Statuses(ctx context.Context, revision int64) (kept bool, all []StoredStatus, err error)
}

// StatusReader is a Reader whose objects may have the statuses that the store keeps.
type StatusReader interface {
	// ShowsStatuses reports whether they have. It may change while the program runs.
	ShowsStatuses() bool
	// Reached returns the revision that the Reader has reached, without waiting.
	Reached() int64
}

// For returns the object with the status, if the status is about this state of it. If
// not, it returns nil.
func (s StoredStatus) For(o *schema.Object) *schema.Object {
	if plain := o.WithoutStatus(); plain != nil && plain.Revision() == s.Of {
		return plain.WithStatus(s.Revision, s.StatusText)
	}
	return nil
}
