package v1

import (
	"cmp"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// ClustersResponse is the answer of CDS.
type ClustersResponse struct {
	Clusters []Cluster `json:"clusters"`
}

// Cluster is one upstream cluster.
type Cluster struct {
	Name                     string            `json:"name"`
	ServiceName              string            `json:"service_name,omitempty"`
	ConnectTimeoutMS         int64             `json:"connect_timeout_ms"`
	Type                     string            `json:"type"`
	LBType                   string            `json:"lb_type"`
	RingHash                 *RingHash         `json:"ring_hash_lb_config,omitempty"`
	MaxRequestsPerConnection int               `json:"max_requests_per_connection,omitempty"`
	Hosts                    []ClusterHost     `json:"hosts,omitempty"`
	SSLContext               *ClientTLS        `json:"ssl_context,omitempty"`
	Features                 string            `json:"features,omitempty"`
	HTTP2Settings            *HTTP2Settings    `json:"http2_settings,omitempty"`
	CircuitBreakers          *CircuitBreakers  `json:"circuit_breakers,omitempty"`
	OutlierDetection         *OutlierDetection `json:"outlier_detection,omitempty"`
	HealthCheck              *HealthCheck      `json:"health_check,omitempty"`
}

// HTTP2Settings are the settings of connections to endpoints.
type HTTP2Settings struct {
	MaxConcurrentStreams int `json:"max_concurrent_streams"`
}

// ClusterHost is "tcp://host:port".
type ClusterHost struct {
	URL string `json:"url"`
}

// CircuitBreakers holds the limits of default priority.
type CircuitBreakers struct {
	Default CircuitBreaker `json:"default"`
}

// CircuitBreaker omits the limits that keep Envoy's default.
type CircuitBreaker struct {
	MaxConnections     int `json:"max_connections,omitempty"`
	MaxPendingRequests int `json:"max_pending_requests,omitempty"`
	MaxRequests        int `json:"max_requests,omitempty"`
	MaxRetries         int `json:"max_retries,omitempty"`
}

// OutlierDetection is active if it is present, even if it is empty.
type OutlierDetection struct {
	Consecutive5xx int `json:"consecutive_5xx,omitempty"`
	// The percentage of endpoints beyond the limit that are ejected. nil is Envoy's
	// default: all for 5xx, and none for gateway failures.
	EnforcingConsecutive5xx            *int `json:"enforcing_consecutive_5xx,omitempty"`
	ConsecutiveGatewayFailure          int  `json:"consecutive_gateway_failure,omitempty"`
	EnforcingConsecutiveGatewayFailure *int `json:"enforcing_consecutive_gateway_failure,omitempty"`

	IntervalMS         int64 `json:"interval_ms,omitempty"`
	BaseEjectionTimeMS int64 `json:"base_ejection_time_ms,omitempty"`
	MaxEjectionPercent int   `json:"max_ejection_percent,omitempty"`
	// EnforcingSuccessRate is nil if all endpoints that answer worse than others are
	// ejected.
	EnforcingSuccessRate *int `json:"enforcing_success_rate,omitempty"`
}

// Clusters returns the answer of CDS. If routes are closed, it includes BlackHole.
func Clusters(cfg *ir.Config) (ClustersResponse, diag.List) {
	out := make([]Cluster, len(cfg.Clusters))
	var problems diag.List
	for i, c := range cfg.Clusters {
		encoded, p := OneCluster(c)
		out[i] = encoded
		problems = append(problems, p...)
	}
	if closes(cfg) && !HasBlackHole(cfg) {
		out = append(out, BlackHole())
	}
	return ClustersResponse{Clusters: out}, problems
}

// OneCluster returns one cluster of the answer of CDS.
func OneCluster(c *ir.Cluster) (Cluster, diag.List) {
	if c.DestinationPort > 0 {
		return cluster(c.Closed()), diag.Warn(diag.NotHonoured, c.Origins, "cluster %s has no endpoints in Envoy v1: "+
			"a connection goes on to the very port that it was going to", c.Name)
	}
	if why := unverifiable(c.TLS); why != "" {
		return cluster(c.Closed()), diag.Warn(diag.NotHonoured, c.Origins, "cluster %s has no endpoints in Envoy v1: %s", c.Name, why)
	}
	return cluster(c), slices.Concat(inPlainText(c), unboundedEjection(c), hostsAlike(c), balancedOtherwise(c), preferredOtherwise(c), askedOtherwise(c), withoutWord(c), namedOtherwise(c))
}

// inPlainText reports endpoints that take mutual TLS. v1 has one way to all endpoints.
func inPlainText(c *ir.Cluster) diag.List {
	if c.MutualTLS == nil {
		return nil
	}
	return diag.Warn(diag.NotHonoured, c.Origins, "connections of cluster %s are in plain text in Envoy v1, which endpoints with mode STRICT refuse: a DestinationRule with ISTIO_MUTUAL has all of them use TLS", c.Name)
}

func hostURL(h ir.Endpoint) string {
	if _, ok := h.Socket(); ok {
		return h.Host
	}
	return "tcp://" + h.Address().String()
}

// BlackHole is the cluster of closed routes (VirtualHost.Closes).
func BlackHole() Cluster { return cluster((&ir.Cluster{Name: blackHole}).Closed()) }

// HasBlackHole reports whether the configuration already has a cluster of that name.
func HasBlackHole(cfg *ir.Config) bool {
	return slices.ContainsFunc(cfg.Clusters, func(c *ir.Cluster) bool { return c.Name == blackHole })
}

// unboundedEjection reports limits of ejections that v1 lacks. Only a runtime setting of
// the machine ends an Envoy's use of health, and each ejection lasts longer than the one
// before.
func unboundedEjection(c *ir.Cluster) diag.List {
	o := c.OutlierDetection
	if o == nil || o.MaxEjectionTime == 0 && o.MinHealthPercent == nil {
		return nil
	}
	return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 sends to all instances of %s while fewer than half are healthy, "+
		"and the time of an ejection grows without limit", c.Name)
}

// hostsAlike reports properties of endpoints that a cluster lists itself: in v1 they have
// an address and nothing else.
func hostsAlike(c *ir.Cluster) diag.List {
	for _, h := range c.Hosts {
		if h.Zone != c.Hosts[0].Zone || max(h.Weight, 1) != max(c.Hosts[0].Weight, 1) {
			return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 sends to all endpoints of %s alike: "+
				"it knows no weights and no localities of those that are looked up or outside the mesh", c.Name)
		}
	}
	return nil
}

// withoutWord reports settings of a cluster that v1 lacks. None of them decides which
// endpoint gets a request.
func withoutWord(c *ir.Cluster) diag.List {
	var out diag.List
	conns, outlier := c.Connections, cmp.Or(c.OutlierDetection, &ir.OutlierDetection{})
	for _, part := range []struct {
		missing bool
		instead string
	}{
		{conns.Keepalive != nil, "probes no quiet connections to %s: its machine's settings hold"},
		{conns.IdleTimeout != nil, "keeps idle connections to %s"},
		{conns.MaxDuration > 0, "keeps connections to %s, however old"},
		{conns.SameProtocol, "calls %s in the one version of HTTP that its port has"},
		{conns.Ping != nil, "probes no connections of HTTP/2 to %s"},
		{outlier.LocalOrigin, "counts failures to connect to %s together with what is answered"},
	} {
		if part.missing {
			out = append(out, diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 "+part.instead, c.Name)...)
		}
	}
	return out
}

// connectTimeout is Pilot's default.
const connectTimeout = time.Second

func cluster(c *ir.Cluster) Cluster {
	out := Cluster{
		Name:                     envoy.ClusterName(c.Name),
		ServiceName:              c.EndpointKey,
		ConnectTimeoutMS:         millis(cmp.Or(c.ConnectTimeout, connectTimeout)),
		Type:                     clusterType(c),
		LBType:                   lbType(c),
		RingHash:                 ringHash(c),
		MaxRequestsPerConnection: c.MaxRequestsPerConnection,
		SSLContext:               clientTLS(c.TLS),
		CircuitBreakers:          circuitBreakers(c.CircuitBreaker),
		OutlierDetection:         outlierDetection(c.OutlierDetection),
		HealthCheck:              healthCheck(c.HealthCheck),
	}
	for _, h := range c.Hosts {
		out.Hosts = append(out.Hosts, ClusterHost{URL: hostURL(h)})
	}
	if c.HTTP2 {
		out.Features = "http2"
		if n := c.Connections.MaxStreams; n > 0 {
			out.HTTP2Settings = &HTTP2Settings{MaxConcurrentStreams: n}
		}
	}
	return out
}

func clusterType(c *ir.Cluster) string {
	switch c.Type {
	case ir.OriginalDestination:
		return "original_dst"
	case ir.LogicalDNS:
		return "logical_dns"
	case ir.StaticHosts, ir.StrictDNS:
		if len(c.Hosts) == 0 {
			// Refused by Envoy together with all other clusters. SDS
			// can say "no hosts", and does for a key without instances.
			return "sds"
		}
		if c.Type == ir.StaticHosts {
			return "static"
		}
		return "strict_dns"
	default:
		return "sds"
	}
}

func circuitBreakers(b *ir.CircuitBreaker) *CircuitBreakers {
	if b == nil {
		return nil
	}
	return &CircuitBreakers{Default: CircuitBreaker(*b)}
}

func outlierDetection(o *ir.OutlierDetection) *OutlierDetection {
	if o == nil {
		return nil
	}
	out := &OutlierDetection{
		IntervalMS:         millis(o.Interval),
		BaseEjectionTimeMS: millis(o.BaseEjectionTime),
		MaxEjectionPercent: o.MaxEjectionPercent,
	}
	if o.AnswersOnly {
		out.EnforcingSuccessRate = new(int)
	}
	out.Consecutive5xx, out.EnforcingConsecutive5xx = errorLimit(o.ConsecutiveErrors)
	if o.GatewayErrors != nil {
		out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = errorLimit(o.GatewayErrors)
		if out.EnforcingConsecutiveGatewayFailure == nil {
			all := 100
			out.EnforcingConsecutiveGatewayFailure = &all
		}
	}
	return out
}

// errorLimit returns a limit and the percentage of endpoints beyond it that are ejected:
// nil is Envoy's default, 0 is none.
func errorLimit(n *int) (limit int, enforcing *int) {
	if n == nil {
		return 0, nil
	}
	if *n == 0 {
		return 0, new(int)
	}
	return *n, nil
}
