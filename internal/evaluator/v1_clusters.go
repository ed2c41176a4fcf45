package evaluator

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// v1Cluster is a cluster of CDS.
type v1Cluster struct {
	Name        string `json:"name"`
	ServiceName string `json:"service_name"`
	TimeoutMS   int64  `json:"connect_timeout_ms"`
	Type        string `json:"type"`
	Balancer    string `json:"lb_type"`
	MaxRequests int    `json:"max_requests_per_connection"`
	Ring        struct {
		Least int `json:"minimum_ring_size"`
	} `json:"ring_hash_lb_config"`
	Hosts []struct {
		URL string `json:"url"`
	} `json:"hosts"`
	TLS      *v1ClientTLS `json:"ssl_context"`
	Features string       `json:"features"`
	Breakers struct {
		Default struct {
			Connections *int `json:"max_connections"`
			Pending     *int `json:"max_pending_requests"`
			Requests    *int `json:"max_requests"`
			Retries     *int `json:"max_retries"`
		} `json:"default"`
	} `json:"circuit_breakers"`
	Outlier  *v1Outlier `json:"outlier_detection"`
	Health   *v1Health  `json:"health_check"`
	Settings struct {
		MaxStreams int `json:"max_concurrent_streams"`
	} `json:"http2_settings"`
}

type v1ClientTLS struct {
	Certificate string   `json:"cert_chain_file"`
	Key         string   `json:"private_key_file"`
	CA          string   `json:"ca_cert_file"`
	SNI         string   `json:"sni"`
	Names       []string `json:"verify_subject_alt_name"`
}

type v1Health struct {
	Type       string     `json:"type"`
	TimeoutMS  int64      `json:"timeout_ms"`
	IntervalMS int64      `json:"interval_ms"`
	Unhealthy  int        `json:"unhealthy_threshold"`
	Healthy    int        `json:"healthy_threshold"`
	Path       string     `json:"path"`
	Send       []struct{} `json:"send"`
	Receive    []struct{} `json:"receive"`
}

type v1Outlier struct {
	Consecutive5xx   *int   `json:"consecutive_5xx"`
	Enforcing5xx     *int   `json:"enforcing_consecutive_5xx"`
	Gateway          *int   `json:"consecutive_gateway_failure"`
	EnforcingGateway *int   `json:"enforcing_consecutive_gateway_failure"`
	IntervalMS       *int64 `json:"interval_ms"`
	EjectionMS       *int64 `json:"base_ejection_time_ms"`
	MaxPercent       *int   `json:"max_ejection_percent"`
	EnforcingSuccess *int   `json:"enforcing_success_rate"`
}

func (r *v1Reader) readClusters(text []byte) {
	var answer struct {
		Clusters []v1Cluster `json:"clusters"`
	}
	r.decode("clusters", text, &answer)
	for _, c := range answer.Clusters {
		r.addCluster(r.cluster("cluster "+c.Name, c))
	}
}

func (r *v1Reader) cluster(at string, c v1Cluster) *Cluster {
	r.require(c.TimeoutMS > 0, at, "must have a connect timeout")
	r.require(c.Features == "" || c.Features == "http2", at, "features %q are not known", c.Features)
	r.require((c.Type == "original_dst") == (c.Balancer == "original_dst_lb"), at, "balancer %s does not go with type %s", c.Balancer, c.Type)
	limits := c.Breakers.Default
	out := &Cluster{
		Name: c.Name, Balancer: c.Balancer, ConnectTimeout: milliseconds(c.TimeoutMS),
		HTTP2: c.Features == "http2", MaxRequestsPerConnection: c.MaxRequests, MaxStreams: c.Settings.MaxStreams, Ring: c.Ring.Least,
		Limits: Limits{
			Connections:     withDefault(limits.Connections, defaultLimits.Connections),
			PendingRequests: withDefault(limits.Pending, defaultLimits.PendingRequests),
			Requests:        withDefault(limits.Requests, defaultLimits.Requests),
			Retries:         withDefault(limits.Retries, defaultLimits.Retries),
		},
	}
	if t := c.TLS; t != nil {
		out.TLS = &TLS{
			CertificateFile: t.Certificate, KeyFile: t.Key, CAFile: t.CA, SNI: t.SNI, SubjectAltNames: slices.Sorted(slices.Values(t.Names)),
		}
	}
	if h := c.Health; h != nil {
		out.Health = &Health{h.Path, milliseconds(h.IntervalMS), milliseconds(h.TimeoutMS), h.Unhealthy, h.Healthy}
	}
	if o := c.Outlier; o != nil {
		out.Outlier = &Outlier{
			Consecutive5xx:     r.errorLimit(at, withDefault(o.Consecutive5xx, 5), withDefault(o.Enforcing5xx, 100)),
			ConsecutiveGateway: r.errorLimit(at, withDefault(o.Gateway, 5), withDefault(o.EnforcingGateway, 0)),
			Interval:           milliseconds(withDefault(o.IntervalMS, defaultOutlier.Interval.Milliseconds())),
			BaseEjection:       milliseconds(withDefault(o.EjectionMS, defaultOutlier.BaseEjection.Milliseconds())),
			MaxPercent:         withDefault(o.MaxPercent, defaultOutlier.MaxPercent),
			Panic:              defaultOutlier.Panic,
			SuccessRate:        withDefault(o.EnforcingSuccess, 100) > 0,
			Unbounded:          true,
		}
	}
	r.discover(at, c, out)
	return out
}

// Envoy's defaults, the same in both versions.
var (
	defaultLimits  = Limits{Connections: 1024, PendingRequests: 1024, Requests: 1024, Retries: 3}
	defaultOutlier = Outlier{Interval: 10 * time.Second, BaseEjection: 30 * time.Second, MaxPercent: 10, Panic: 50}
)

func (r *v1Reader) discover(at string, c v1Cluster, out *Cluster) {
	for _, h := range c.Hosts {
		address, ok := strings.CutPrefix(h.URL, "tcp://")
		if strings.HasPrefix(h.URL, "unix://") {
			address, ok = h.URL, true
		}
		r.require(ok, at, "host %q is not known", h.URL)
		out.Endpoints = append(out.Endpoints, Endpoint{Address: address, Weight: 1})
	}
	switch c.Type {
	case "logical_dns":
		r.require(len(c.Hosts) == 1, at, "type %s must have one host, found %d", c.Type, len(c.Hosts))
		out.Discovery = FirstOfDNS
	case "static", "strict_dns":
		r.require(len(c.Hosts) > 0, at, "type %s must have hosts", c.Type)
		out.Discovery = Fixed
		if c.Type == "strict_dns" {
			out.Discovery = DNS
		}
	case "sds":
		key := c.ServiceName
		if key == "" {
			key = c.Name
		}
		found, ok := r.endpoints[key]
		r.require(ok, at, "there is no answer for its key %s", key)
		out.Discovery, out.Endpoints = Fixed, slices.Clone(found)
	case "original_dst":
		r.require(len(c.Hosts) == 0, at, "must not have hosts")
		out.Discovery = Original
	default:
		r.fail(at, "type %q is not known", c.Type)
	}
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
