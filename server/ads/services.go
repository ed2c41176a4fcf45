package ads

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// answerOther serves one request of another service within the limits of its connection.
func (s *Server) answerOther(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	on := connectionOf(ctx)
	message, ok := request.(proto.Message)
	if on == nil || !ok {
		return nil, status.Error(codes.Internal, "the request is on no connection of this server")
	}
	if name := compressionOf(ctx); name != "" {
		return nil, status.Errorf(codes.Unimplemented, "the request is compressed as %s: send it as it is", name)
	}
	held, err := on.memory.stream()
	if err != nil {
		return nil, err
	}
	defer held.close()
	defer func() { held.take(int64(proto.Size(message)) + messageHead) }()
	if on.private {
		if err := refuseProxied(ctx); err != nil {
			return nil, err
		}
	}
	return handler(ctx, request)
}
