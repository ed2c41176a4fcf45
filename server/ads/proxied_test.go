package ads_test

import (
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestProxiedStream checks that a private listener serves no stream that an Envoy
// forwards from another client.
func TestProxiedStream(t *testing.T) {
	for _, test := range []struct {
		header string
		want   codes.Code
	}{
		{"x-request-id", codes.PermissionDenied},
		{"x-forwarded-proto", codes.PermissionDenied},
		{"via", codes.PermissionDenied},
		{"x-envoy-internal", codes.InvalidArgument}, // It has been admitted as far as the node.
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveAs(t, ads.Options{}, newSource())
			s.privately = true
			conn := s.dial()
			defer conn.Close()
			ctx := metadata.AppendToOutgoingContext(t.Context(), test.header, "a")
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "nobody"}, TypeUrl: lds}) // Recv returns how it ends.
			if _, err := stream.Recv(); status.Code(err) != test.want {
				t.Errorf("%s: %v, want %s", test.header, err, test.want)
			}
		})
	}
}
