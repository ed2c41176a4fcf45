package evaluator

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// balancers maps load balancing policies to v1's names.
var balancers = map[clusterv3.Cluster_LbPolicy]string{
	clusterv3.Cluster_ROUND_ROBIN:      "round_robin",
	clusterv3.Cluster_LEAST_REQUEST:    "least_request",
	clusterv3.Cluster_RANDOM:           "random",
	clusterv3.Cluster_CLUSTER_PROVIDED: "original_dst_lb",
	clusterv3.Cluster_RING_HASH:        "ring_hash",
	clusterv3.Cluster_MAGLEV:           "maglev",
}

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

func (r *v3Reader) cluster(at string, c *clusterv3.Cluster) *Cluster {
	r.only(at, c, "name", "type", "eds_cluster_config", "connect_timeout", "lb_policy", "load_assignment",
		"common_lb_config", "dns_lookup_family", "transport_socket", "circuit_breakers", "outlier_detection", "typed_extension_protocol_options", "upstream_connection_options", "health_checks", "ignore_health_on_host_removal",
		"original_dst_lb_config", "ring_hash_lb_config", "maglev_lb_config", "round_robin_lb_config", "least_request_lb_config")
	balancer, ok := balancers[c.GetLbPolicy()]
	r.require(ok, at, "balancer %s is not known", c.GetLbPolicy())
	out := &Cluster{
		Name: c.GetName(), Balancer: balancer,
		ConnectTimeout: duration(c.GetConnectTimeout(), 5*time.Second),
		TLS:            r.clientTLS(at, c.GetTransportSocket()),
		Limits:         r.limits(at, c.GetCircuitBreakers()),
		Outlier:        r.outlier(at, c.GetOutlierDetection()),
		Beyond: slices.Concat(beyond(c, "upstream_connection_options", "round_robin_lb_config", "least_request_lb_config", "maglev_lb_config"),
			beyond(c.GetOutlierDetection(), "split_external_local_origin_errors")),
	}
	out.Ring = int(c.GetRingHashLbConfig().GetMinimumRingSize().GetValue())
	for name := range c.GetTypedExtensionProtocolOptions() {
		r.require(name == httpOptions, at, "options %s are not known", name)
		r.httpOptions(at, c, out)
	}
	if common := c.GetCommonLbConfig(); common != nil {
		r.only(at, common, "healthy_panic_threshold", "locality_weighted_lb_config")
		if out.Outlier != nil {
			out.Outlier.Panic = int(common.GetHealthyPanicThreshold().GetValue())
		}
	}
	out.Health = r.health(at, c.GetHealthChecks())
	out.Beyond = append(out.Beyond, beyond(c, "ignore_health_on_host_removal")...)
	r.discover(at, c, out)
	shared := slices.ContainsFunc(out.Endpoints, func(e Endpoint) bool { return e.Share > 0 })
	r.require(!shared || c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil, at, "weights of localities do not count")
	return out
}

func (r *v3Reader) health(at string, checks []*corev3.HealthCheck) *Health {
	if len(checks) == 0 {
		return nil
	}
	r.require(len(checks) == 1, at, "more than one health check is not known here")
	h := checks[0]
	r.only(at, h, "interval", "timeout", "unhealthy_threshold", "healthy_threshold", "no_traffic_interval", "http_health_check", "tcp_health_check", "grpc_health_check")
	return &Health{
		Path: h.GetHttpHealthCheck().GetPath(), Interval: h.GetInterval().AsDuration(), Timeout: h.GetTimeout().AsDuration(),
		Unhealthy: int(h.GetUnhealthyThreshold().GetValue()), Healthy: int(h.GetHealthyThreshold().GetValue()),
	}
}

func (r *v3Reader) discover(at string, c *clusterv3.Cluster, out *Cluster) {
	if a := c.GetLoadAssignment(); a != nil {
		out.Endpoints = r.assignment(a)
	}
	out.Discovery = Fixed
	switch c.GetType() {
	case clusterv3.Cluster_STATIC:
	case clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_LOGICAL_DNS:
		if out.Discovery = DNS; c.GetType() == clusterv3.Cluster_LOGICAL_DNS {
			out.Discovery = FirstOfDNS
			r.require(len(out.Endpoints) == 1, at, "type LOGICAL_DNS must have one endpoint, found %d", len(out.Endpoints))
		}
		r.require(c.GetDnsLookupFamily() == clusterv3.Cluster_V4_ONLY, at, "family %s is not known here", c.GetDnsLookupFamily())
	case clusterv3.Cluster_ORIGINAL_DST:
		out.Discovery = Original
		r.only(at, c.GetOriginalDstLbConfig(), "upstream_port_override")
		out.Port = int(c.GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue())
		r.require(c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED, at, "balancer %s does not go with type %s", c.GetLbPolicy(), c.GetType())
	case clusterv3.Cluster_EDS:
		r.only(at, c.GetEdsClusterConfig(), "service_name", "eds_config")
		key := c.GetEdsClusterConfig().GetServiceName()
		if key == "" {
			key = c.GetName()
		}
		found, ok := r.endpoints[key]
		r.require(ok, at, "there is no answer for its key %s", key)
		out.Endpoints = slices.Clone(found)
	default:
		r.fail(at, "type %s is not known", c.GetType())
	}
}

func (r *v3Reader) httpOptions(at string, c *clusterv3.Cluster, out *Cluster) {
	options := &httpv3.HttpProtocolOptions{}
	if !r.unpack(at, c.GetTypedExtensionProtocolOptions()[httpOptions], options) {
		return
	}
	r.only(at, options, "common_http_protocol_options", "explicit_http_config", "use_downstream_protocol_config", "upstream_http_protocol_options")
	if auto := options.GetUpstreamHttpProtocolOptions(); auto != nil {
		r.only(at, auto, "auto_sni", "auto_san_validation")
		r.require(out.TLS != nil, at, "names of requests need TLS")
		out.TLS.AutoSNI, out.TLS.AutoSAN = auto.GetAutoSni(), auto.GetAutoSanValidation()
	}
	if common := options.GetCommonHttpProtocolOptions(); common != nil {
		r.only(at, common, "max_requests_per_connection", "idle_timeout", "max_connection_duration")
		out.MaxRequestsPerConnection = int(common.GetMaxRequestsPerConnection().GetValue())
		out.Beyond = append(out.Beyond, beyond(common, "idle_timeout", "max_connection_duration")...)
	}
	if same := options.GetUseDownstreamProtocolConfig(); same != nil {
		r.only(at, same, "http_protocol_options", "http2_protocol_options")
		r.http2Options(at, same.GetHttp2ProtocolOptions(), out)
		out.Beyond = append(out.Beyond, "use_downstream_protocol_config")
		return
	}
	explicit := options.GetExplicitHttpConfig()
	r.only(at, explicit, "http_protocol_options", "http2_protocol_options")
	if http2 := explicit.GetHttp2ProtocolOptions(); http2 != nil {
		r.http2Options(at, http2, out)
		out.HTTP2 = true
	}
	if http1 := explicit.GetHttpProtocolOptions(); http1 != nil {
		r.only(at, http1)
	}
}

func (r *v3Reader) http2Options(at string, o *corev3.Http2ProtocolOptions, out *Cluster) {
	r.only(at, o, "max_concurrent_streams", "connection_keepalive")
	out.MaxStreams = number(o.GetMaxConcurrentStreams(), 0)
	out.Beyond = append(out.Beyond, beyond(o, "connection_keepalive")...)
}

func (r *v3Reader) limits(at string, b *clusterv3.CircuitBreakers) Limits {
	if b == nil {
		return defaultLimits
	}
	r.only(at, b, "thresholds")
	r.require(len(b.GetThresholds()) == 1, at, "more than one priority is not known here")
	t := b.GetThresholds()[0]
	r.only(at, t, "max_connections", "max_pending_requests", "max_requests", "max_retries")
	return Limits{
		Connections:     number(t.GetMaxConnections(), defaultLimits.Connections),
		PendingRequests: number(t.GetMaxPendingRequests(), defaultLimits.PendingRequests),
		Requests:        number(t.GetMaxRequests(), defaultLimits.Requests),
		Retries:         number(t.GetMaxRetries(), defaultLimits.Retries),
	}
}

// practicallyForever is a bound that is never reached.
const practicallyForever = 365 * 24 * time.Hour

func (r *v3Reader) outlier(at string, o *clusterv3.OutlierDetection) *Outlier {
	if o == nil {
		return nil
	}
	r.only(at, o, "consecutive_5xx", "enforcing_consecutive_5xx", "consecutive_gateway_failure", "enforcing_consecutive_gateway_failure", "interval", "base_ejection_time", "max_ejection_percent", "max_ejection_time", "always_eject_one_host",
		"enforcing_success_rate", "split_external_local_origin_errors", "consecutive_local_origin_failure", "enforcing_consecutive_local_origin_failure", "enforcing_local_origin_success_rate")
	return &Outlier{
		Consecutive5xx:     r.errorLimit(at, number(o.GetConsecutive_5Xx(), 5), number(o.GetEnforcingConsecutive_5Xx(), 100)),
		ConsecutiveGateway: r.errorLimit(at, number(o.GetConsecutiveGatewayFailure(), 5), number(o.GetEnforcingConsecutiveGatewayFailure(), 0)),
		Interval:           duration(o.GetInterval(), defaultOutlier.Interval),
		BaseEjection:       duration(o.GetBaseEjectionTime(), defaultOutlier.BaseEjection),
		MaxPercent:         number(o.GetMaxEjectionPercent(), defaultOutlier.MaxPercent),
		Panic:              defaultOutlier.Panic,
		SuccessRate:        number(o.GetEnforcingSuccessRate(), 100) > 0,
		Unbounded:          o.GetAlwaysEjectOneHost().GetValue() && duration(o.GetMaxEjectionTime(), 0) >= practicallyForever,
	}
}
