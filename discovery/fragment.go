package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// digest is a content hash.
type digest [sha256.Size]byte

func sum(content []byte) digest { return sha256.Sum256(content) }

// version is how a digest is shown to a proxy.
func (d digest) version() string { return hex.EncodeToString(d[:16]) }

// fragment is an encoded message: a resource, or a part of one. It is immutable.
type fragment struct {
	kind   protoreflect.MessageType
	hash   digest
	binary []byte // deterministic

	fields lazy[[]byte]
}

func newFragment(m proto.Message) (*fragment, error) {
	kind := m.ProtoReflect().Type()
	name := kind.Descriptor().FullName()
	room := scratch.Get().(*[]byte)
	defer scratch.Put(room)
	content, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(append((*room)[:0], name...), m)
	if err != nil {
		return nil, err
	}
	*room = content[:0]
	// Of its own size: what is kept is mostly this.
	return &fragment{kind: kind, hash: sum(content), binary: bytes.Clone(content[len(name):])}, nil
}

// scratch is room to marshal in.
var scratch = sync.Pool{New: func() any { return &[]byte{} }}

// message is what was encoded.
func (f *fragment) message() proto.Message {
	m := f.kind.New().Interface()
	if err := proto.Unmarshal(f.binary, m); err != nil {
		panic(err) // It was a message before.
	}
	return m
}

// json is the message in proto JSON, made when somebody asks. Compacted, because
// protojson varies its white space from one build to the next on purpose.
func (f *fragment) json() []byte {
	text, err := f.fields.get(func() (*[]byte, error) {
		spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(f.message())
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
		panic(err) // What is valid in binary is so in JSON.
	}
	return *text
}
