package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// NoNamespace is the namespace in the keys of objects that are in no namespace. It is no
// valid name.
const NoNamespace = "-"

// Key identifies one object by kind (the Go-style kind name, "RouteRule"),
// namespace and name. It is comparable.
type Key struct {
	Kind      string
	Namespace string
	Name      string
}

// String returns "RouteRule namespace/name".
func (k Key) String() string { return k.Ref().String() }

// Ref returns the key as a diag.Ref.
func (k Key) Ref() diag.Ref {
	if k.Namespace == NoNamespace {
		k.Namespace = ""
	}
	return diag.Ref(k)
}

// KeyOf returns the key of an object of a kind, whose namespace does not count if the kind
// is Cluster.
func KeyOf(kind *Kind, namespace, name string) Key {
	if kind.Cluster {
		namespace = NoNamespace
	}
	return Key{Kind: kind.Kind, Namespace: namespace, Name: name}
}

// Normal returns the key with NoNamespace if its kind is Cluster.
func (k Key) Normal() Key {
	if kind, ok := KindByName(k.Kind); ok {
		return KeyOf(kind, k.Namespace, k.Name)
	}
	return k
}

// Object is one config object: its kind, its metadata and its spec. An Object is
// immutable once built and may be shared by any number of goroutines. WithMeta and
// New make a changed one.
//
// The whole object is encoded once, when it is built. The store, a GET and every
// watcher use those bytes. Private fields are only in the stored text and are
// replaced by marks elsewhere. The typed spec is decoded on first use, and shared
// while it is in use, also by objects with the same spec under other metadata.
type Object struct {
	Kind *Kind
	Meta metav1.ObjectMeta

	spec   json.RawMessage // in the written form, compact, as it may be shown: a part of raw
	raw    []byte          // the whole object as it may be shown, Meta.ResourceVersion included
	sealed sealed          // nil if everything may be shown
	typed  *typedSpec
	// writtenIn is the version of the text that the object was decoded from, ""
	// if it was made otherwise.
	writtenIn string
	// decoded is this very object if Decode made it, so that Validate need not
	// check it again. In a copy it still points to the original.
	decoded *Object
	// plain is the object without its status, if it has one. Both share raw, which has
	// the resourceVersion of plain.
	plain  *Object
	status *StatusText
}

// The fixed parts of an encoded object. Its metadata begins with the
// resourceVersion, so that it can be inserted later.
const (
	beforeGroup = `{"apiVersion":"`
	beforeName  = `","kind":"`
	beforeMeta  = `","metadata":{`
	beforeSpec  = `},"spec":`
)

// New builds an object from its parts. The spec must already be in the written
// form, as Decode makes it. New does not validate.
func New(kind *Kind, meta metav1.ObjectMeta, spec json.RawMessage) (*Object, error) {
	written, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", kind.Kind, meta.Namespace, meta.Name, err)
	}
	return assemble(kind, meta, func(out []byte) []byte { return append(out, written...) }, len(written))
}

// assemble encodes an object; size is the approximate size of the spec in bytes.
func assemble(kind *Kind, meta metav1.ObjectMeta, appendSpec func([]byte) []byte, size int) (*Object, error) {
	if len(kind.private) > 0 {
		return kind.seal(meta, appendSpec(nil))
	}
	return write(kind, meta, appendSpec, size)
}

// write encodes an object that may be shown.
func write(kind *Kind, meta metav1.ObjectMeta, appendSpec func([]byte) []byte, size int) (*Object, error) {
	raw, err := appendHead(make([]byte, 0, size+sizeOfHead(kind, &meta)), kind, &meta)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", kind.Kind, meta.Namespace, meta.Name, err)
	}
	if kind.Flat {
		spec := appendSpec(nil)
		return build(kind, meta, spec, appendMembers(raw, spec)), nil
	}
	from := len(raw)
	raw = append(appendSpec(raw), '}')
	return build(kind, meta, raw[from:len(raw)-1:len(raw)-1], raw), nil
}

// appendMembers appends the members of a spec, and the end of the object.
func appendMembers(raw []byte, spec json.RawMessage) []byte {
	if inner := bytes.TrimSpace(spec[1 : len(spec)-1]); len(inner) > 0 {
		raw = append(append(raw, ','), inner...)
	}
	return append(raw, '}')
}

// appendHead appends everything before the spec, or before its members.
func appendHead(out []byte, kind *Kind, meta *metav1.ObjectMeta) ([]byte, error) {
	out = append(out, beforeGroup...)
	out = append(out, kind.APIVersion()...)
	out = append(out, beforeName...)
	out = append(out, kind.Kind...)
	out = append(out, beforeMeta...)
	from := len(out)
	out = appendRevision(out, meta.ResourceVersion)
	before := len(out)
	out, err := appendMeta(out, meta)
	if len(out) == before && before > from {
		out = out[:before-1] // No comma if nothing follows.
	}
	if kind.Flat {
		return append(out, '}'), err
	}
	return append(out, beforeSpec...), err
}

// appendRevision appends the resourceVersion as the first member, if there is one.
func appendRevision(out []byte, resourceVersion string) []byte {
	if resourceVersion == "" {
		return out
	}
	out = append(out, `"resourceVersion":`...)
	return append(appendText(out, resourceVersion), ',')
}

// sizeOfHead estimates what appendHead writes. In most cases it is not too low.
func sizeOfHead(kind *Kind, meta *metav1.ObjectMeta) int {
	size := 320 + len(kind.Kind) + len(meta.Name) + len(meta.Namespace)
	for _, texts := range []map[string]string{meta.Labels, meta.Annotations} {
		for key, value := range texts {
			size += len(key) + len(value) + len(`"":"",`)
		}
	}
	return size
}

func build(kind *Kind, meta metav1.ObjectMeta, spec json.RawMessage, raw []byte) *Object {
	return &Object{Kind: kind, Meta: meta, spec: spec, raw: raw, typed: &typedSpec{}}
}

// Stored rebuilds an object from bytes that New encoded without a resourceVersion
// (see Encoded), with or without a checksum, and the revision at which they were
// written. It copies the bytes.
func Stored(raw []byte, revision int64) (*Object, error) {
	raw, err := WithoutChecksum(raw)
	if err != nil {
		return nil, fmt.Errorf("decode stored object: %w", err)
	}
	o, err := readStored(raw)
	if err != nil {
		return nil, fmt.Errorf("decode stored object: %w", err)
	}
	return o.AtRevision(revision), nil
}

// AtRevision returns the object as it reads at a revision of the store.
func (o *Object) AtRevision(revision int64) *Object {
	before, after := o.aroundRevision()
	at := &Object{Kind: o.Kind, Meta: o.Meta, sealed: o.sealed, typed: o.typed}
	at.Meta.ResourceVersion = strconv.FormatInt(revision, 10)
	const field = `"resourceVersion":"",`
	at.raw = make([]byte, 0, len(before)+len(field)+len(at.Meta.ResourceVersion)+len(after))
	at.raw = appendRevision(append(at.raw, before...), at.Meta.ResourceVersion)
	if after[0] == '}' {
		at.raw = at.raw[:len(at.raw)-1] // No comma if nothing follows.
	}
	at.raw = append(at.raw, after...)
	if at.spec = o.spec; !o.Kind.Flat {
		end := len(at.raw) - 1
		at.spec = at.raw[end-len(o.spec) : end : end]
	}
	return at
}

// Encoded returns the text to store: the whole object without its resourceVersion,
// which the store assigns. The caller must not change it. A store that cannot trust
// its medium stores it WithChecksum.
func (o *Object) Encoded() []byte {
	before, after := o.aroundRevision()
	switch {
	case o.sealed != nil:
		return slices.Concat(before, after[:len(after)-len(o.spec)-len("}")], o.written(), []byte("}"))
	case o.Meta.ResourceVersion == "":
		return o.raw
	}
	return slices.Concat(before, after)
}

// IsEncodedAs reports whether a text equals Encoded.
func (o *Object) IsEncodedAs(text []byte) bool {
	if o.sealed != nil {
		return bytes.Equal(o.Encoded(), text)
	}
	before, after := o.aroundRevision()
	return len(text) == len(before)+len(after) && bytes.HasPrefix(text, before) && bytes.HasSuffix(text, after)
}

// aroundRevision returns the parts of an object before and after the
// resourceVersion, or the place where it would be.
func (o *Object) aroundRevision() (before, after []byte) {
	o = o.WithoutStatus()
	at := bytes.Index(o.raw, []byte(beforeMeta)) + len(beforeMeta)
	before, after = o.raw[:at], o.raw[at:]
	if o.Meta.ResourceVersion != "" {
		field := len(appendRevision(nil, o.Meta.ResourceVersion))
		if after[field-1] != ',' {
			field-- // Nothing follows.
		}
		after = after[field:]
	}
	return before, after
}

// JSON returns the whole object as it is sent, with private fields as marks. The
// slice is shared: the caller must not change it.
func (o *Object) JSON() []byte {
	if o.plain == nil {
		return o.raw
	}
	return o.AppendJSONIn(make([]byte, 0, o.LengthIn(o.Kind.Version)), o.Kind.Version)
}

// Size returns the length of the object as written, in bytes, without the metadata
// that the server adds: a stored object has the size of the one that was sent.
func (o *Object) Size() int {
	o = o.WithoutStatus()
	whole := len(o.raw) + len(o.written()) - len(o.spec)
	if whole <= MaxNewBytes {
		return whole // Far below the limit a few bytes do not matter.
	}
	added, err := json.Marshal(metav1.ObjectMeta{
		ResourceVersion: o.Meta.ResourceVersion, UID: o.Meta.UID, Generation: o.Meta.Generation,
		CreationTimestamp: o.Meta.CreationTimestamp, DeletionTimestamp: o.Meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: o.Meta.DeletionGracePeriodSeconds, ManagedFields: o.Meta.ManagedFields,
	})
	if err != nil || len(added) == len("{}") {
		return whole
	}
	return whole - (len(added) - len("{}") + len(","))
}

// SpecJSON returns the spec alone, in the written form, with private fields as
// marks. The caller must not change it.
func (o *Object) SpecJSON() json.RawMessage { return o.spec }

// SameSpec reports whether the specs of two objects have the same values. The order
// of fields and the escaping of characters do not matter. Private fields count.
func (o *Object) SameSpec(other *Object) bool {
	mine, theirs := o.written(), other.written()
	return bytes.Equal(mine, theirs) || bytes.Equal(written(mine), written(theirs))
}

// Spec returns the typed spec: *RouteRule, *networking.ServiceEntry and so on. It
// is shared: the caller must not change it. The object does not keep the decoded
// spec in memory, so a caller that needs it often should keep it, or the values
// read from it. An error means that the object never passed Decode or Validate.
func (o *Object) Spec() (any, error) { return o.typed.get(o.Kind, o.written()) }

// Key returns the key of the object.
func (o *Object) Key() Key {
	return KeyOf(o.Kind, o.Meta.Namespace, o.Meta.Name)
}

// Revision returns the store revision of this version of the object, 0 if it was
// never stored.
func (o *Object) Revision() int64 {
	n, err := strconv.ParseInt(o.Meta.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// WithMeta returns an object with the same kind and spec and other metadata.
func (o *Object) WithMeta(meta metav1.ObjectMeta) (*Object, error) {
	out, err := assemble(o.Kind, meta, func(out []byte) []byte { return append(out, o.written()...) }, len(o.written()))
	if err != nil {
		return nil, err
	}
	out.typed, out.writtenIn = o.typed, o.writtenIn
	return out, nil
}
