package compile

import (
	"math"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// policyWriter changes a cluster as traffic policies say.
type policyWriter struct {
	*ir.Cluster
	target target
	pilot  mesh.V1Compatibility
	// What of the policies cannot be met. TLS settings take the place of
	// those before.
	unmetTLS, unmetWay bool
}

// pilotLimit is what Pilot filled in for limits that are not named.
const (
	pilotLimit   = 1024
	pilotRetries = 3
)

// apply lays a policy over what is there.
func (w *policyWriter) apply(policy *networking.TrafficPolicy, subset bool) {
	if policy == nil {
		return
	}
	w.secure(policy)
	policy = w.atPort(policy)
	w.loadBalancer(policy.GetLoadBalancer())
	w.connectionPool(policy.GetConnectionPool())
	if o := policy.GetOutlierDetection(); o != nil {
		w.OutlierDetection = w.outlierDetection(o)
	} else if subset && w.pilot.SubsetsDropOutlierDetection {
		w.OutlierDetection = nil
	}
}

// secure lays that part of a policy over what is there which says who may read
// along.
func (w *policyWriter) secure(policy *networking.TrafficPolicy) {
	if policy == nil {
		return
	}
	w.unmetWay = w.unmetWay || !schema.FollowsWay(policy)
	if tls := w.atPort(policy).GetTls(); tls != nil {
		w.TLS = w.clientTLS(tls)
		w.unmetTLS = !schema.FollowsTLS(tls)
	}
}

// finish closes a cluster that cannot be reached as the policies say: requests
// get 503, and nothing goes out in another way.
func (w *policyWriter) finish() {
	if !w.unmetTLS && !w.unmetWay {
		return
	}
	nobody := mesh.ServiceKey{Hostname: w.target.host}.With("", mesh.Labels{noSuchSubset: "closed"})
	w.Type, w.Hosts, w.TLS, w.EndpointKey = ir.StaticHosts, nil, nil, nobody.String()
}

// atPort is the policy for the cluster's port. One of its own takes the place
// of all that is said for the other ports.
func (w policyWriter) atPort(policy *networking.TrafficPolicy) *networking.TrafficPolicy {
	for _, own := range policy.GetPortLevelSettings() {
		if int(own.GetPort().GetNumber()) == w.target.port {
			return &networking.TrafficPolicy{
				LoadBalancer:     own.GetLoadBalancer(),
				ConnectionPool:   own.GetConnectionPool(),
				OutlierDetection: own.GetOutlierDetection(),
				Tls:              own.GetTls(),
			}
		}
	}
	return policy
}

func (w policyWriter) loadBalancer(lb *networking.LoadBalancerSettings) {
	if lb == nil || w.Type == ir.OriginalDestination || lb.GetConsistentHash() != nil {
		return
	}
	switch lb.GetSimple().String() {
	case "LEAST_CONN", "LEAST_REQUEST":
		w.LoadBalancer = ir.LeastRequest
	case "RANDOM":
		w.LoadBalancer = ir.Random
	case "PASSTHROUGH":
		w.Type, w.Hosts = ir.OriginalDestination, nil
	default:
		w.LoadBalancer = ir.RoundRobin
	}
}

func (w policyWriter) connectionPool(pool *networking.ConnectionPoolSettings) {
	if w.pilot.DestinationRuleDefaults {
		w.MaxRequestsPerConnection = pilotLimit
	}
	if pool == nil {
		return
	}
	limits := ir.CircuitBreaker{}
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
}

func setLimit(to *int, limit int32) {
	if limit > 0 {
		*to = int(limit)
	}
}

func (w policyWriter) outlierDetection(o *networking.OutlierDetection) *ir.OutlierDetection {
	out := &ir.OutlierDetection{}
	if w.pilot.DestinationRuleDefaults {
		out = &ir.OutlierDetection{
			ConsecutiveErrors: 5, Interval: 10 * time.Second,
			BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 10,
		}
	}
	//lint:ignore SA1019 Old objects have it.
	setLimit(&out.ConsecutiveErrors, o.GetConsecutiveErrors())
	setLimit(&out.ConsecutiveErrors, int32(min(o.GetConsecutive_5XxErrors().GetValue(), math.MaxInt32)))
	setLimit(&out.MaxEjectionPercent, o.GetMaxEjectionPercent())
	if o.GetInterval() != nil {
		out.Interval = o.GetInterval().AsDuration()
	}
	if o.GetBaseEjectionTime() != nil {
		out.BaseEjectionTime = o.GetBaseEjectionTime().AsDuration()
	}
	return out
}

// Where Istio has put the files of a workload's own identity.
const (
	workloadCertificate = "/etc/certs/cert-chain.pem"
	workloadKey         = "/etc/certs/key.pem"
	workloadRoots       = "/etc/certs/root-cert.pem"
)

// clientTLS is nil for plain text.
func (w policyWriter) clientTLS(tls *networking.ClientTLSSettings) *ir.ClientTLS {
	out := &ir.ClientTLS{SNI: tls.GetSni(), SubjectAltNames: tls.GetSubjectAltNames()}
	switch tls.GetMode() {
	case networking.ClientTLSSettings_DISABLE:
		return nil
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		out.CertificateFile, out.KeyFile, out.CAFile = workloadCertificate, workloadKey, workloadRoots
		return out
	case networking.ClientTLSSettings_MUTUAL:
		out.CertificateFile, out.KeyFile = tls.GetClientCertificate(), tls.GetPrivateKey()
	}
	if !tls.GetInsecureSkipVerify().GetValue() {
		out.CAFile = tls.GetCaCertificates()
	}
	if out.SNI == "" && !strings.Contains(w.target.host, "*") {
		out.SNI = w.target.host
	}
	return out
}
