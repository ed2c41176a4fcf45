package v3

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

// checkHealth sets the health checks of endpoints. An endpoint that is removed is gone,
// even if it is still alive.
func checkHealth(out *clusterv3.Cluster, c *ir.Cluster) {
	h := c.HealthCheck
	if h == nil {
		return
	}
	check := &corev3.HealthCheck{
		Interval: durationpb.New(h.Interval), Timeout: durationpb.New(h.Timeout),
		UnhealthyThreshold: wrapperspb.UInt32(uint32(h.Unhealthy)), HealthyThreshold: wrapperspb.UInt32(uint32(h.Healthy)),
		// Otherwise Envoy checks a cluster without requests once a minute.
		NoTrafficInterval: durationpb.New(h.Interval),
	}
	switch {
	case h.HTTP != nil:
		check.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: httpHealthCheck(h.HTTP, c.HTTP2)}
	case h.GRPC != nil:
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{ServiceName: h.GRPC.Service}}
	default:
		check.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
	}
	out.HealthChecks = []*corev3.HealthCheck{check}
	out.IgnoreHealthOnHostRemoval = true
}

func httpHealthCheck(h *ir.HTTPHealthCheck, http2 bool) *corev3.HealthCheck_HttpHealthCheck {
	out := &corev3.HealthCheck_HttpHealthCheck{Path: h.Path, Host: h.Host}
	if http2 {
		out.CodecClientType = typev3.CodecClientType_HTTP2
	}
	return out
}
