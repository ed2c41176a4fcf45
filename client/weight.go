package client

import (
	"bytes"
	"errors"
	"io"

	"github.com/pilot-api/pilot-api/schema"
)

// maxWeight bounds what one answer of a Client takes in memory, in bytes: a list, also of
// all kinds, or all changes. A small text can take a hundred times its length: {} may be
// a whole object. A document has half of it, because its slices are copied as they grow.
const maxWeight = 1 << 30

var errTooHeavy = errors.New("it takes too much memory")

// weightOf estimates what an object takes in memory, in bytes: its text, which the
// metadata repeats, and each entry of its metadata, which may be shorter as text. nil
// weighs nothing.
func weightOf(o *schema.Object) int {
	const object, entry = 1 << 10, 100
	if o == nil {
		return 0
	}
	m := &o.Meta
	entries := len(m.Labels) + len(m.Annotations) + len(m.OwnerReferences) + len(m.Finalizers) + len(m.ManagedFields)
	return object + 2*len(o.JSON()) + entry*entries
}

func (s ObjectWithStatus) weight() int { return weightOf(s.Object) + len(s.Raw) }

// weighedReader reads a JSON document and fails once its values take more memory than is
// left. It counts each brace as a struct and each comma and bracket as an element, also
// in texts.
type weighedReader struct {
	r    io.Reader
	left int
}

func (w *weighedReader) Read(p []byte) (int, error) {
	const structure, element = 256, 32
	n, err := w.r.Read(p)
	read := p[:n]
	w.left -= n + structure*bytes.Count(read, []byte("{")) +
		element*(bytes.Count(read, []byte(","))+bytes.Count(read, []byte("[")))
	if w.left < 0 {
		return n, errTooHeavy
	}
	return n, err
}
