package ads

import (
	"context"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

// encoded is a message that is already encoded, in two parts. They are copied only
// into the output of the connection. release must be called when both are written
// or will not be; gRPC does that for messages it receives.
type encoded struct {
	own     []byte
	shared  *[]byte
	release func()
}

func (e *encoded) len() int { return len(e.own) + len(*e.shared) }

// Get and Put make an encoded message the pool of its own buffer. So gRPC reports when it
// has written the buffer.
func (e *encoded) Get(int) *[]byte { panic("nothing is taken from here") }
func (e *encoded) Put(*[]byte)     { e.release() }

func (e *encoded) buffers() mem.BufferSlice {
	if mem.IsBelowBufferPoolingThreshold(cap(*e.shared)) {
		e.release()
	}
	return mem.BufferSlice{mem.SliceBuffer(e.own), mem.NewBuffer(e.shared, e)}
}

// wire is a received message, which is decoded later, when there is room.
type wire struct{ data mem.BufferSlice }

// maxSmall bounds the requests of other services than discovery, which are decoded at once.
const maxSmall = 64 << 10

// codec sends encoded messages unchanged, and leaves requests for discovery undecoded.
type codec struct{}

var _ encoding.CodecV2 = codec{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *encoded:
		return m.buffers(), nil
	case proto.Message:
		out, err := proto.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(out)}, err
	}
	return nil, fmt.Errorf("cannot marshal a %T", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *wire:
		data.Ref()
		m.data = data
		return nil
	case proto.Message:
		if data.Len() > maxSmall {
			return fmt.Errorf("the request has %d bytes, and may have %d", data.Len(), maxSmall)
		}
		return proto.Unmarshal(data.Materialize(), m)
	}
	return fmt.Errorf("cannot unmarshal into a %T", v)
}

// compressions records how the requests of a stream are compressed. gRPC supports
// gzip once any package of the process has imported it, and expands small messages
// to large ones before they can be counted.
type compressions struct{}

var _ stats.Handler = compressions{}

type compressionKey struct{}

func (compressions) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, compressionKey{}, new(string))
}

func (compressions) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if head, ok := s.(*stats.InHeader); ok {
		*ctx.Value(compressionKey{}).(*string) = head.Compression
	}
}

func (compressions) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (compressions) HandleConn(context.Context, stats.ConnStats)                       {}

// compressionOf returns how the requests of a stream are compressed, or "" if they
// are not.
func compressionOf(ctx context.Context) string {
	if name, ok := ctx.Value(compressionKey{}).(*string); ok && *name != encoding.Identity {
		return *name
	}
	return ""
}
