package proxyauth

import (
	"context"
	"crypto/tls"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// CredentialsOf returns the credentials of a gRPC request or stream.
func CredentialsOf(ctx context.Context) Credentials {
	shown := Credentials{Context: ctx, TLS: ConnectionState(ctx)}
	if p, _ := peer.FromContext(ctx); p != nil {
		shown.Address = p.Addr.String()
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	shown.Authorization = headers.Get("authorization")
	return shown
}

// ConnectionState returns the TLS of the connection of a gRPC request, nil for plain text.
func ConnectionState(ctx context.Context) *tls.ConnectionState {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return &info.State
}
