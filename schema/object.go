package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// Key names one object: kind (the Go-style kind name, "RouteRule"), namespace
// and name. It is comparable.
type Key struct {
	Kind      string
	Namespace string
	Name      string
}

// String is "RouteRule namespace/name".
func (k Key) String() string { return k.Ref().String() }

// Ref is the same name in the vocabulary of problems.
func (k Key) Ref() diag.Ref { return diag.Ref(k) }

// Object is one config object: its kind, its metadata and its spec. An Object
// is immutable once built and may be shared by any number of goroutines;
// whoever wants another one makes it with WithMeta or New.
//
// The whole object is encoded once, by whoever builds it, and those bytes are
// what is stored, what a GET answers and what every watcher receives. The
// typed spec is decoded at its first use and kept.
type Object struct {
	Kind *Kind
	Meta metav1.ObjectMeta

	spec  json.RawMessage // in the written spelling, compact
	raw   []byte          // the whole object, Meta.ResourceVersion included
	typed func() (any, error)
	// valid: Decode made this very object, so Validate need not look again.
	valid bool
}

// envelope is the one order in which an object is written. WithRevision
// depends on metadata coming third, with the fixed text before it.
type envelope struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       json.RawMessage   `json:"spec"`
}

// New builds an object from its parts. The spec must already be in the
// written spelling; Decode sees to that. New does not validate.
func New(kind *Kind, meta metav1.ObjectMeta, spec json.RawMessage) (*Object, error) {
	raw, err := json.Marshal(envelope{kind.APIVersion(), kind.Kind, meta, spec})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", kind.Kind, meta.Namespace, meta.Name, err)
	}
	return build(kind, meta, spec, raw), nil
}

func build(kind *Kind, meta metav1.ObjectMeta, spec json.RawMessage, raw []byte) *Object {
	o := &Object{Kind: kind, Meta: meta, spec: spec, raw: raw}
	o.typed = sync.OnceValues(func() (any, error) { return kind.decodeSpec(spec) })
	return o
}

// Stored rebuilds an object from bytes that New encoded without a
// resourceVersion (see Encoded) and the revision at which they were written.
// The bytes are copied once, with the revision put in its place.
func Stored(raw []byte, revision int64) (*Object, error) {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("decode stored object: %w", err)
	}
	kind, ok := KindByName(e.Kind)
	if !ok {
		return nil, fmt.Errorf("decode stored object: unknown kind %q", e.Kind)
	}
	prefix := []byte(`{"apiVersion":"` + e.APIVersion + `","kind":"` + e.Kind + `","metadata":{`)
	if !bytes.HasPrefix(raw, prefix) {
		return nil, fmt.Errorf("decode stored object %s %s/%s: not in the written form", e.Kind, e.Metadata.Namespace, e.Metadata.Name)
	}
	e.Metadata.ResourceVersion = strconv.FormatInt(revision, 10)
	field := `"resourceVersion":"` + e.Metadata.ResourceVersion + `",`
	whole := make([]byte, 0, len(raw)+len(field))
	whole = append(whole, prefix...)
	whole = append(whole, field...)
	whole = append(whole, raw[len(prefix):]...)
	return build(kind, e.Metadata, e.Spec, whole), nil
}

// Encoded is the text to store: the whole object without its resourceVersion,
// which is the store's to give.
func (o *Object) Encoded() ([]byte, error) {
	meta := o.Meta
	meta.ResourceVersion = ""
	return json.Marshal(envelope{o.Kind.APIVersion(), o.Kind.Kind, meta, o.spec})
}

// JSON is the whole object as it goes over the wire. The slice is shared:
// it must not be changed.
func (o *Object) JSON() []byte { return o.raw }

// Size is the length of the object as it is written, in bytes, without the
// metadata that the server adds: what is stored is as large as what was sent.
func (o *Object) Size() int {
	if len(o.raw) <= MaxNewBytes {
		return len(o.raw) // No bound is near: a few bytes do not matter.
	}
	added, err := json.Marshal(metav1.ObjectMeta{
		ResourceVersion: o.Meta.ResourceVersion, UID: o.Meta.UID, Generation: o.Meta.Generation,
		CreationTimestamp: o.Meta.CreationTimestamp, DeletionTimestamp: o.Meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: o.Meta.DeletionGracePeriodSeconds,
	})
	if err != nil || len(added) == len("{}") {
		return len(o.raw)
	}
	return len(o.raw) - (len(added) - len("{}") + len(","))
}

// SpecJSON is the spec alone, in the written spelling. It must not be changed.
func (o *Object) SpecJSON() json.RawMessage { return o.spec }

// Spec is the typed spec: *RouteRule, *networking.ServiceEntry and so on. It
// is decoded once, shared, and must not be changed. An error means that the
// object never passed Decode or Validate.
func (o *Object) Spec() (any, error) { return o.typed() }

// Key names the object.
func (o *Object) Key() Key {
	return Key{Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name}
}

// Revision is the store revision of this version of the object, 0 when it was
// never stored.
func (o *Object) Revision() int64 {
	n, err := strconv.ParseInt(o.Meta.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// WithMeta is the same kind and spec under other metadata.
func (o *Object) WithMeta(meta metav1.ObjectMeta) (*Object, error) {
	return New(o.Kind, meta, o.spec)
}
