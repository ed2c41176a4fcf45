package ir

import (
	"strings"
	"time"
)

// HealthCheck asks endpoints whether they are alive, and leaves out those that
// are not. With neither HTTP nor GRPC it asks for a connection.
type HealthCheck struct {
	HTTP *HTTPHealthCheck
	GRPC *GRPCHealthCheck

	Interval, Timeout time.Duration // above 0
	// Unhealthy is after how many failures in a row an endpoint leaves, Healthy
	// after how many answers it is back; above 0.
	Unhealthy, Healthy int
}

// HTTPHealthCheck is a GET that must be answered with 200.
type HTTPHealthCheck struct{ Path, Host string }

// GRPCHealthCheck asks for a service, "" for the server; of a cluster of HTTP/2.
type GRPCHealthCheck struct{ Service string }

func (f *faults) healthCheck(c *Cluster) {
	h := c.HealthCheck
	if h == nil {
		return
	}
	f.require(c.Type != OriginalDestination, "who goes where the connection went knows no endpoints to ask for their health")
	f.require(h.Interval > 0 && h.Timeout > 0 && h.Unhealthy > 0 && h.Healthy > 0, "health check must have times and thresholds, found %+v", *h)
	f.require(h.HTTP == nil || strings.HasPrefix(h.HTTP.Path, "/"), "health check must have a path")
	f.require(h.HTTP == nil || h.GRPC == nil, "health check must ask in one way")
	f.require(h.GRPC == nil || c.HTTP2, "health check by gRPC goes over HTTP/2 alone")
}
