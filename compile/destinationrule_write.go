package compile

import (
	"cmp"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// policyWriter applies traffic policies to a cluster.
type policyWriter struct {
	*ir.Cluster
	stream *ir.Stream
	// decidesTLS is that of the part.
	decidesTLS *bool
	target     target
	http       bool // whether requests to it are routed one by one

	reader    *reader
	namespace string // of the rule with the policy
	settings  *mesh.Settings
	pilot     mesh.V1Compatibility
}

// policyWriter returns a writer to out, which nobody else may share.
func (rd *reader) policyWriter(out *clusterPart, t target, rule *destinationRule) policyWriter {
	namespace := ""
	if rule != nil {
		namespace = rule.ref.Namespace
	}
	return policyWriter{
		Cluster: out.cluster, stream: &out.stream, decidesTLS: &out.decidesTLS, target: t, reader: rd, namespace: namespace, settings: rd.settings, pilot: rd.pilot(),
		http: t.service != nil && rd.routesHTTP(t.service, t.port),
	}
}

// Pilot's defaults for limits that are not set.
const (
	pilotLimit   = 1024
	pilotRetries = 3
)

// Istio's defaults.
const (
	noLimit             = math.MaxUint32
	longestEjectionTime = 5 * time.Minute
)

// mergedPolicy returns a policy laid over another, for one port. Each part of over
// replaces that of under as a whole. The settings of over for the port replace all
// four parts that a port may have, wherever they come from. The result is nil if
// both policies are.
func mergedPolicy(under, over *networking.TrafficPolicy, port int) *networking.TrafficPolicy {
	if over == nil {
		return under
	}
	out := &networking.TrafficPolicy{
		LoadBalancer:     cmp.Or(over.GetLoadBalancer(), under.GetLoadBalancer()),
		ConnectionPool:   cmp.Or(over.GetConnectionPool(), under.GetConnectionPool()),
		OutlierDetection: cmp.Or(over.GetOutlierDetection(), under.GetOutlierDetection()),
		Tls:              cmp.Or(over.GetTls(), under.GetTls()),
		Tunnel:           cmp.Or(over.GetTunnel(), under.GetTunnel()),
		ProxyProtocol:    cmp.Or(over.GetProxyProtocol(), under.GetProxyProtocol()),
	}
	for _, own := range over.GetPortLevelSettings() {
		if int(own.GetPort().GetNumber()) == port {
			out.LoadBalancer, out.ConnectionPool = own.GetLoadBalancer(), own.GetConnectionPool()
			out.OutlierDetection, out.Tls = own.GetOutlierDetection(), own.GetTls()
			break
		}
	}
	return out
}

// apply applies the whole policy of a cluster. It is called once.
func (w policyWriter) apply(policy *networking.TrafficPolicy) {
	w.localities(policy)
	if policy == nil && w.pilot.DestinationRuleDefaults {
		return
	}
	w.loadBalancer(policy.GetLoadBalancer())
	w.connectionPool(policy.GetConnectionPool())
	if o := policy.GetOutlierDetection(); o != nil {
		w.OutlierDetection = w.outlierDetection(o)
	}
	w.secure(policy)
}

// secure applies the part of a policy that protects connections. A cluster that
// cannot be reached as the policy requires is closed: requests get 503, and nothing
// is sent in another way.
func (w policyWriter) secure(policy *networking.TrafficPolicy) {
	var lack unmet
	if tls := policy.GetTls(); tls != nil {
		w.TLS, lack = w.clientTLS(tls)
		*w.decidesTLS = true
	}
	if lack != (unmet{}) || !schema.FollowsWay(policy) {
		*w.Cluster = *w.Closed()
	}
}

func (w policyWriter) connectionPool(pool *networking.ConnectionPoolSettings) {
	if w.pilot.DestinationRuleDefaults {
		w.MaxRequestsPerConnection = pilotLimit
	}
	if pool == nil && w.pilot.DestinationRuleDefaults {
		return
	}
	limits := ir.CircuitBreaker{MaxConnections: noLimit, MaxPendingRequests: noLimit, MaxRequests: noLimit, MaxRetries: noLimit}
	if w.pilot.DestinationRuleDefaults {
		limits = ir.CircuitBreaker{
			MaxConnections: pilotLimit, MaxPendingRequests: pilotLimit,
			MaxRequests: pilotLimit, MaxRetries: pilotRetries,
		}
	}
	tcp, http := pool.GetTcp(), pool.GetHttp()
	if timeout := tcp.GetConnectTimeout().AsDuration(); timeout > 0 {
		w.ConnectTimeout = timeout
	}
	setLimit(&limits.MaxConnections, tcp.GetMaxConnections())
	setLimit(&limits.MaxPendingRequests, http.GetHttp1MaxPendingRequests())
	setLimit(&limits.MaxRequests, http.GetHttp2MaxRequests())
	setLimit(&limits.MaxRetries, http.GetMaxRetries())
	setLimit(&w.MaxRequestsPerConnection, http.GetMaxRequestsPerConnection())
	w.CircuitBreaker = &limits
	w.tcpConnections(tcp)
	if w.http {
		w.httpConnections(http)
	}
}

func (w policyWriter) tcpConnections(tcp *networking.ConnectionPoolSettings_TCPSettings) {
	if k := tcp.GetTcpKeepalive(); k != nil {
		w.Connections.Keepalive = &ir.Keepalive{Time: k.GetTime().AsDuration(), Interval: k.GetInterval().AsDuration(), Probes: int(k.GetProbes())}
	}
	age := tcp.GetMaxConnectionDuration().AsDuration()
	if w.http {
		w.Connections.MaxDuration = age
		return
	}
	w.stream.MaxDuration, w.stream.IdleTimeout = age, said(tcp.GetIdleTimeout())
}

func (w policyWriter) httpConnections(http *networking.ConnectionPoolSettings_HTTPSettings) {
	w.Connections.IdleTimeout = said(http.GetIdleTimeout())
	w.Connections.SameProtocol = http.GetUseClientProtocol()
	w.Connections.MaxStreams = int(http.GetMaxConcurrentStreams())
	if http.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE {
		w.HTTP2 = true
	}
	if k := http.GetHttp2KeepAlive(); k != nil {
		w.Connections.Ping = &ir.Ping{Interval: k.GetInterval().AsDuration(), Timeout: k.GetTimeout().AsDuration()}
	}
}

// said returns nil for a duration that is not set.
func said(d *durationpb.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	out := d.AsDuration()
	return &out
}

func setLimit(to *int, limit int32) {
	if limit > 0 {
		*to = int(limit)
	}
}

func (w policyWriter) outlierDetection(o *networking.OutlierDetection) *ir.OutlierDetection {
	out := &ir.OutlierDetection{MinHealthPercent: new(int), AnswersOnly: true}
	if w.pilot.DestinationRuleDefaults {
		errors := 5
		out = &ir.OutlierDetection{
			ConsecutiveErrors: &errors, Interval: 10 * time.Second,
			BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 10,
		}
	}
	//lint:ignore SA1019 Old objects have it.
	if old := int(o.GetConsecutiveErrors()); old > 0 {
		out.ConsecutiveErrors = &old
	}
	out.ConsecutiveErrors = cmp.Or(errorLimit(o.GetConsecutive_5XxErrors()), out.ConsecutiveErrors)
	out.GatewayErrors = errorLimit(o.GetConsecutiveGatewayErrors())
	out.LocalOrigin = o.GetSplitExternalLocalOriginErrors()
	if local := errorLimit(o.GetConsecutiveLocalOriginFailures()); out.LocalOrigin && local != nil {
		out.LocalErrors = local
	}
	setLimit(&out.MaxEjectionPercent, o.GetMaxEjectionPercent())
	if o.GetInterval() != nil {
		out.Interval = o.GetInterval().AsDuration()
	}
	if o.GetBaseEjectionTime() != nil {
		out.BaseEjectionTime = o.GetBaseEjectionTime().AsDuration()
	}
	if !w.pilot.DestinationRuleDefaults {
		out.MaxEjectionTime = max(longestEjectionTime, out.BaseEjectionTime)
	}
	if percent := int(o.GetMinHealthPercent()); percent > 0 {
		out.MinHealthPercent = &percent
	}
	return out
}

// errorLimit returns nil if the limit is not set; 0 means never.
func errorLimit(n *wrapperspb.UInt32Value) *int {
	if n == nil {
		return nil
	}
	limit := int(n.GetValue())
	return &limit
}
