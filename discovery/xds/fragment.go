package xds

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilot-api/pilot-api/discovery/cached"
)

// Digest is a content hash.
type Digest [sha256.Size]byte

func sum(content []byte) Digest { return sha256.Sum256(content) }

// Version returns the digest as the version string for proxies.
func (d Digest) Version() string { return hex.EncodeToString(d[:16]) }

// Fragment is an encoded message: a resource, or a part of one. It is immutable.
type Fragment struct {
	kind   protoreflect.MessageType
	hash   Digest
	Binary []byte // deterministic

	fields cached.Lazy[[]byte]
}

func newFragment(m proto.Message) (*Fragment, error) {
	kind := m.ProtoReflect().Type()
	name := kind.Descriptor().FullName()
	room := scratch.Get().(*[]byte)
	defer scratch.Put(room)
	content, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(append((*room)[:0], name...), m)
	if err != nil {
		return nil, err
	}
	*room = content[:0]
	// The buffer has exactly the needed size, because most of the memory is in these.
	return &Fragment{kind: kind, hash: sum(content), Binary: bytes.Clone(content[len(name):])}, nil
}

// scratch has buffers to marshal into.
var scratch = sync.Pool{New: func() any { return &[]byte{} }}

// Message returns the message that was encoded.
func (f *Fragment) Message() proto.Message {
	m := f.kind.New().Interface()
	if err := proto.Unmarshal(f.Binary, m); err != nil {
		panic(err) // It was a message before.
	}
	return m
}

// JSON returns the message in proto JSON, which is made at the first call. It is compacted,
// because protojson deliberately varies its white space between builds.
func (f *Fragment) JSON() []byte {
	text, err := f.fields.Get(func() (*[]byte, error) {
		spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(f.Message())
		if err != nil {
			return nil, err
		}
		var compact bytes.Buffer
		compact.Grow(len(spaced))
		err = json.Compact(&compact, spaced)
		text := compact.Bytes()
		return &text, err
	})
	if err != nil {
		panic(err) // A message that is valid in binary is valid in JSON.
	}
	return *text
}
