package compile

import (
	"cmp"

	"github.com/pilot-api/pilot-api/ir"
)

// healthCheck returns the active health check of a target's instances, or nil if
// there is none. If a port does not use the protocol of the check, the check only
// connects.
func (rd *reader) healthCheck(c *ir.Cluster, t target) *ir.HealthCheck {
	check := cmp.Or(t.service.HealthCheck, rd.settings.HealthCheck)
	if check == nil || c.Type == ir.OriginalDestination {
		return nil
	}
	out := &ir.HealthCheck{
		Interval: check.Interval.Duration, Timeout: check.Timeout.Duration,
		Unhealthy: check.UnhealthyThreshold, Healthy: check.HealthyThreshold,
	}
	switch {
	case check.HTTP != nil && rd.routesHTTP(t.service, t.port):
		out.HTTP = &ir.HTTPHealthCheck{Path: check.HTTP.Path, Host: cmp.Or(check.HTTP.Host, t.service.Hostname)}
	case check.GRPC != nil && c.HTTP2:
		out.GRPC = &ir.GRPCHealthCheck{Service: check.GRPC.Service}
	}
	return out
}
