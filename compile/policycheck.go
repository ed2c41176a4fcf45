package compile

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// checkPolicyFields reports what a policy says beyond what Envoys of the v1 API
// can do.
func (p *plan) checkPolicyFields(ref diag.Ref, at string, policy *networking.TrafficPolicy) {
	p.checkLoadBalancer(ref, at+".loadBalancer", policy.GetLoadBalancer())
	p.checkConnectionPool(ref, at+".connectionPool", policy.GetConnectionPool())
	p.checkOutlierDetection(ref, at+".outlierDetection", policy.GetOutlierDetection())
	p.checkClientTLS(ref, at+".tls", policy.GetTls())
	p.unsupported(ref, at, []field{
		{policy.GetTunnel() != nil, "tunnel", "connections are not tunnelled"},
		{policy.GetProxyProtocol() != nil, "proxyProtocol", "connections start without a PROXY header"},
		{policy.GetRetryBudget() != nil, "retryBudget", "retries are limited by connectionPool.http.maxRetries only"},
	})
	for i, own := range policy.GetPortLevelSettings() {
		p.checkPolicyFields(ref, fmt.Sprintf("%s.portLevelSettings[%d]", at, i), &networking.TrafficPolicy{
			LoadBalancer: own.GetLoadBalancer(), ConnectionPool: own.GetConnectionPool(),
			OutlierDetection: own.GetOutlierDetection(), Tls: own.GetTls(),
		})
	}
}

func (p *plan) checkLoadBalancer(ref diag.Ref, at string, lb *networking.LoadBalancerSettings) {
	warmup := lb.GetWarmupDurationSecs() != nil || lb.GetWarmup() != nil
	p.unsupported(ref, at, []field{
		{lb.GetConsistentHash() != nil, "consistentHash", "requests are not hashed; they go round robin"},
		{lb.GetLocalityLbSetting() != nil, "localityLbSetting", "instances of all localities are alike"},
		{lb.GetZoneAwareLbSetting() != nil, "zoneAwareLbSetting", "instances of all zones are alike"},
		{warmup, "warmup", "new instances get their full share at once"},
	})
}

func (p *plan) checkConnectionPool(ref diag.Ref, at string, pool *networking.ConnectionPoolSettings) {
	tcp, http := pool.GetTcp(), pool.GetHttp()
	const idle = "idle connections stay open for as long as Envoy's default"
	p.unsupported(ref, at, []field{
		{tcp.GetTcpKeepalive() != nil, "tcp.tcpKeepalive", "the machine's settings hold"},
		{tcp.GetMaxConnectionDuration() != nil, "tcp.maxConnectionDuration", "connections may last for any time"},
		{tcp.GetIdleTimeout() != nil, "tcp.idleTimeout", idle},
		{http.GetIdleTimeout() != nil, "http.idleTimeout", idle},
		{http.GetH2UpgradePolicy() != networking.ConnectionPoolSettings_HTTPSettings_DEFAULT, "http.h2UpgradePolicy", "the protocol of the port decides about HTTP/2"},
		{http.GetUseClientProtocol(), "http.useClientProtocol", "the protocol of the port decides about HTTP/2"},
		{http.GetMaxConcurrentStreams() > 0, "http.maxConcurrentStreams", "use http2MaxRequests"},
		{http.GetHttp2KeepAlive() != nil, "http.http2KeepAlive", "connections are not probed"},
	})
}

func (p *plan) checkOutlierDetection(ref diag.Ref, at string, o *networking.OutlierDetection) {
	p.unsupported(ref, at, []field{
		{o.GetSplitExternalLocalOriginErrors(), "splitExternalLocalOriginErrors", "errors of both origins count together"},
		{o.GetConsecutiveLocalOriginFailures() != nil, "consecutiveLocalOriginFailures", "use consecutive5xxErrors"},
		{o.GetConsecutiveGatewayErrors() != nil, "consecutiveGatewayErrors", "use consecutive5xxErrors"},
		{o.GetMinHealthPercent() > 0, "minHealthPercent", "Envoy's own limit of healthy instances holds"},
		{len(o.GetOutlierDetectionHttpErrorCodes()) > 0, "outlierDetectionHttpErrorCodes", "every 5xx counts"},
	})
}

func (p *plan) checkClientTLS(ref diag.Ref, at string, tls *networking.ClientTLSSettings) {
	mode := tls.GetMode()
	own := mode == networking.ClientTLSSettings_SIMPLE || mode == networking.ClientTLSSettings_MUTUAL
	p.unsupported(ref, at, []field{
		{tls.GetCredentialName() != "", "credentialName", "there are no secrets to fetch; name files of the proxy's machine"},
		{tls.GetCaCrl() != "", "caCrl", "revocations are not looked up"},
		{own && tls.GetCaCertificates() == "" && !tls.GetInsecureSkipVerify().GetValue(), "caCertificates", "the endpoints are not verified: name a file with their authorities"},
	})
}
