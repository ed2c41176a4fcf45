package ads

import (
	"context"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

// encoded are the parts of a message that is encoded already. Nothing of them is
// copied but into what is written to the connection. release must be called when both
// are written, or never will be; gRPC does so for what it was given.
type encoded struct {
	own     []byte
	shared  *[]byte
	release func()
}

func (e *encoded) len() int { return len(e.own) + len(*e.shared) }

// Get and Put make an encoded the pool of its own buffer, so that gRPC says when it is
// written.
func (e *encoded) Get(int) *[]byte { panic("nothing is taken from here") }
func (e *encoded) Put(*[]byte)     { e.release() }

func (e *encoded) buffers() mem.BufferSlice {
	if mem.IsBelowBufferPoolingThreshold(cap(*e.shared)) {
		e.release()
	}
	return mem.BufferSlice{mem.SliceBuffer(e.own), mem.NewBuffer(e.shared, e)}
}

// wire is a message as it came, which is decoded when there is room for that.
type wire struct{ data mem.BufferSlice }

// codec sends encoded messages as they are, and leaves those that come for later.
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
	w, ok := v.(*wire)
	if !ok {
		return fmt.Errorf("cannot unmarshal into a %T", v)
	}
	data.Ref()
	w.data = data
	return nil
}

// compressions notes how the requests of a stream are compressed. gRPC knows gzip once
// any package of the process has imported it, and makes large messages of small ones
// before they can be counted.
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

// compressionOf is how the requests of a stream are compressed, "" for not at all.
func compressionOf(ctx context.Context) string {
	if name, ok := ctx.Value(compressionKey{}).(*string); ok && *name != encoding.Identity {
		return *name
	}
	return ""
}
