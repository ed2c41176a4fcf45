package v1

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// HealthCheck sets how Envoy checks whether endpoints are alive.
type HealthCheck struct {
	Type               string `json:"type"`
	TimeoutMS          int64  `json:"timeout_ms"`
	IntervalMS         int64  `json:"interval_ms"`
	UnhealthyThreshold int    `json:"unhealthy_threshold"`
	HealthyThreshold   int    `json:"healthy_threshold"`
	Path               string `json:"path,omitempty"`
	// Send and Receive are required for tcp, and may be empty.
	Send    *[]HealthBytes `json:"send,omitempty"`
	Receive *[]HealthBytes `json:"receive,omitempty"`
}

// HealthBytes are bytes in hex.
type HealthBytes struct {
	Binary string `json:"binary"`
}

func healthCheck(h *ir.HealthCheck) *HealthCheck {
	if h == nil {
		return nil
	}
	out := &HealthCheck{
		Type: "http", TimeoutMS: millis(h.Timeout), IntervalMS: millis(h.Interval),
		UnhealthyThreshold: h.Unhealthy, HealthyThreshold: h.Healthy,
	}
	if h.HTTP != nil {
		out.Path = h.HTTP.Path
		return out
	}
	out.Type, out.Send, out.Receive = "tcp", &[]HealthBytes{}, &[]HealthBytes{}
	return out
}

// askedOtherwise reports settings of health checks that v1 lacks. It checks by HTTP or
// by a connection, and uses all endpoints if few are alive.
func askedOtherwise(c *ir.Cluster) diag.List {
	if c.HealthCheck == nil {
		return nil
	}
	out := diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 sends to all instances of %s while fewer than half are alive", c.Name)
	if c.HealthCheck.GRPC != nil {
		out = append(out, diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 asks instances of %s for a connection alone: it knows no health check of gRPC", c.Name)...)
	}
	return out
}
