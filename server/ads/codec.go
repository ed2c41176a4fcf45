package ads

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
)

// encoded are the parts of a message that is encoded already. Nothing of them is
// copied but into what is written to the connection.
type encoded [2][]byte

func encode(r *discovery.Response) encoded {
	own, shared := r.Encode()
	return encoded{own, shared}
}

// codec sends encoded messages as they are, and reads protobuf.
type codec struct{}

var _ encoding.CodecV2 = codec{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case encoded:
		return mem.BufferSlice{mem.SliceBuffer(m[0]), mem.SliceBuffer(m[1])}, nil
	case proto.Message:
		out, err := proto.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(out)}, err
	}
	return nil, fmt.Errorf("cannot marshal a %T", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("cannot unmarshal into a %T", v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	return proto.Unmarshal(buf.ReadOnlyData(), m)
}
