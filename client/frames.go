package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/store"
)

// maxFrame bounds one frame of a watch: an object and its envelope.
const maxFrame = 4 << 20

var errFrameTooLarge = fmt.Errorf("a frame of the watch is larger than %d bytes", maxFrame)

// frame is one JSON document of a watch's body: {"type": …, "object": …}.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// frames reads a watch's body frame by frame.
type frames struct {
	body   io.ReadCloser
	cancel context.CancelFunc // ends the request
	bound  *boundedReader
	dec    *json.Decoder
}

func newFrames(body io.ReadCloser, cancel context.CancelFunc) *frames {
	bound := &boundedReader{r: body, beyond: errFrameTooLarge}
	return &frames{body: body, cancel: cancel, bound: bound, dec: json.NewDecoder(bound)}
}

func (f *frames) close() {
	f.cancel()
	_ = f.body.Close() // It was only read from, so nothing is lost.
}

func (f *frames) next() (frame, error) {
	f.bound.left = maxFrame
	var fr frame
	err := f.dec.Decode(&fr)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return fr, nil
	case errors.Is(err, io.EOF):
		return fr, &store.Error{Kind: store.ErrUnavailable, Detail: "the server ended the watch"}
	case errors.Is(err, errFrameTooLarge):
		return fr, err
	case errors.As(err, &syntax):
		return fr, fmt.Errorf("decode a frame of the watch: %w", err)
	}
	return fr, &store.Error{Kind: store.ErrUnavailable, Detail: "the watch broke off: " + err.Error(), Cause: err}
}

// boundedReader fails once it has read the bytes that are left. The decoder reads
// ahead, so the bound applies to the bytes read since it was last set, and to a frame
// only approximately.
type boundedReader struct {
	r      io.Reader
	left   int
	beyond error // the error of a further read
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.beyond
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// event decodes a frame with a change in a scope.
func (f frame) event(scope store.Scope) (store.Event, error) {
	switch t := store.EventType(f.Type); t {
	case store.Added, store.Modified, store.Deleted:
		o, err := decodeObject(scope, f.Object)
		return store.Event{Type: t, Object: o}, err
	}
	return store.Event{}, fmt.Errorf("a frame of the watch has type %q, want ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", f.Type)
}

// bookmark returns the revision of a BOOKMARK frame.
func (f frame) bookmark() (int64, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(f.Object, &o); err != nil {
		return 0, fmt.Errorf("decode a bookmark of the watch: %w", err)
	}
	return parseRevision(o.ResourceVersion)
}

// failure returns the error of an ERROR frame, after which the server sends no more.
func (f frame) failure() error {
	var status metav1.Status
	if err := json.Unmarshal(f.Object, &status); err != nil {
		return fmt.Errorf("decode an error of the watch: %w", err)
	}
	return fromStatus(&status)
}
