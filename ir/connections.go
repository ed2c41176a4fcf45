package ir

import "time"

// Connections says how connections to the endpoints of a cluster are held. Its
// zero value leaves all of it to the Envoy. What is about HTTP is that of
// clusters that requests are routed to; of others only Keepalive is set.
type Connections struct {
	// Keepalive probes quiet connections; nil leaves that to the machine.
	Keepalive *Keepalive
	// IdleTimeout closes connections without requests; nil is Envoy's default, 0
	// is never.
	IdleTimeout *time.Duration
	// MaxDuration is how old a connection grows; 0 is any age.
	MaxDuration time.Duration
	// SameProtocol: requests go out in the version of HTTP that they came in,
	// whatever the cluster's HTTP2.
	SameProtocol bool
	// MaxStreams are the requests at a time on a connection of HTTP/2; 0 leaves
	// Envoy's default.
	MaxStreams int
	// Ping probes connections of HTTP/2; nil is never.
	Ping *Ping
}

// Keepalive probes a connection that has been quiet for Time, every Interval,
// and gives it up after so many Probes without an answer. 0 leaves each to the
// machine.
type Keepalive struct {
	Time, Interval time.Duration
	Probes         int
}

// Ping asks for a sign of life every Interval and gives a connection up that
// has none for Timeout; both are above 0.
type Ping struct{ Interval, Timeout time.Duration }

// Stream says how a connection is held that is passed on as it is.
type Stream struct {
	// IdleTimeout closes it after so long a silence; nil and 0 are never.
	IdleTimeout *time.Duration
	// MaxDuration is how old it grows; 0 is any age.
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
