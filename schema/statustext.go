package schema

import "strconv"

// StatusText is a Status with its encoding. It does not change.
type StatusText struct {
	Status
	JSON []byte
}

// WithStatus returns the object as it reads since a status revision, which gave it a
// status and a newer resourceVersion. It shares the memory of the object. JSON and
// AppendJSONIn do not contain the status.
func (o *Object) WithStatus(revision int64, status *StatusText) *Object {
	plain := o.WithoutStatus()
	with := *plain
	with.Meta.ResourceVersion = strconv.FormatInt(revision, 10)
	with.plain, with.status = plain, status
	return &with
}

// WithoutStatus returns the object as it was written, with the revision of that write as
// its resourceVersion. That is o itself unless WithStatus made o. It returns nil for nil.
func (o *Object) WithoutStatus() *Object {
	if o == nil || o.plain == nil {
		return o
	}
	return o.plain
}

// StatusText returns the status that WithStatus added, or nil. Do not change it.
func (o *Object) StatusText() *StatusText { return o.status }
