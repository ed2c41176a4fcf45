package ir

import (
	"strings"
	"time"
)

// HealthCheck probes endpoints and leaves out unhealthy ones. With neither HTTP nor
// GRPC it only connects.
type HealthCheck struct {
	HTTP *HTTPHealthCheck
	GRPC *GRPCHealthCheck

	Interval, Timeout time.Duration // above 0
	// Unhealthy is the number of failures in a row after which an endpoint is left
	// out, Healthy the number of successes after which it returns. Both are above
	// 0.
	Unhealthy, Healthy int
}

// HTTPHealthCheck is a GET request that must be answered with 200.
type HTTPHealthCheck struct{ Path, Host string }

// GRPCHealthCheck asks for the health of a service, "" for the server. It needs an
// HTTP/2 cluster.
type GRPCHealthCheck struct{ Service string }

func (f *faults) healthCheck(c *Cluster) {
	h := c.HealthCheck
	if h == nil {
		return
	}
	f.require(c.Type != OriginalDestination, "original-destination clusters have no endpoints to check")
	f.require(h.Interval > 0 && h.Timeout > 0 && h.Unhealthy > 0 && h.Healthy > 0, "health check must have times and thresholds, found %+v", *h)
	f.require(h.HTTP == nil || strings.HasPrefix(h.HTTP.Path, "/"), "health check must have a path")
	f.require(h.HTTP == nil || h.GRPC == nil, "health check must ask in one way")
	f.require(h.GRPC == nil || c.HTTP2, "health check by gRPC goes over HTTP/2 alone")
}
