package ir

import "time"

// Connections says how the connections to the endpoints of a cluster are held. The
// zero value leaves everything to Envoy. The fields for HTTP are set only for
// clusters that requests are routed to; for others only Keepalive is set.
type Connections struct {
	// Keepalive probes idle connections; nil leaves that to the operating system.
	Keepalive *Keepalive
	// IdleTimeout closes connections without requests; nil is Envoy's default, 0 is
	// never.
	IdleTimeout *time.Duration
	// MaxDuration is the maximum age of a connection; 0 is no limit.
	MaxDuration time.Duration
	// SameProtocol sends requests in the HTTP version in which they arrived,
	// whatever the cluster's HTTP2 is.
	SameProtocol bool
	// MaxStreams is the maximum number of concurrent requests on an HTTP/2
	// connection; 0 leaves Envoy's default.
	MaxStreams int
	// Ping probes HTTP/2 connections; nil is never.
	Ping *Ping
}

// Keepalive probes a connection that has been idle for Time, every Interval, and
// closes it after Probes unanswered probes. 0 leaves a value to the operating
// system.
type Keepalive struct {
	Time, Interval time.Duration
	Probes         int
}

// Ping sends an HTTP/2 ping every Interval and closes a connection that does not
// answer within Timeout. Both are above 0.
type Ping struct{ Interval, Timeout time.Duration }

// Stream says how a proxied TCP connection is held.
type Stream struct {
	// IdleTimeout closes an idle connection; nil and 0 are never.
	IdleTimeout *time.Duration
	// MaxDuration is its maximum age; 0 is no limit.
	MaxDuration time.Duration
}

func (f *faults) connections(c Connections) {
	if k := c.Keepalive; k != nil {
		f.require(k.Time >= 0 && k.Interval >= 0 && k.Probes >= 0, "keep-alive must not be negative, found %+v", *k)
	}
	f.require(c.IdleTimeout == nil || *c.IdleTimeout >= 0, "idle timeout must not be negative")
	f.require(c.MaxDuration >= 0, "age of connections must not be negative, found %v", c.MaxDuration)
	f.require(c.MaxStreams >= 0, "streams must not be negative, found %d", c.MaxStreams)
	if p := c.Ping; p != nil {
		f.require(p.Interval > 0 && p.Timeout > 0, "a ping must have an interval and a timeout, found %+v", *p)
	}
}
