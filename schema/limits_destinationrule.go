package schema

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func destinationRuleLimits(r *networking.DestinationRule) diag.List {
	var p problems
	p.policyLimits("spec.trafficPolicy", r.GetTrafficPolicy())
	for i, s := range r.GetSubsets() {
		p.policyLimits(indexField("spec.subsets", i)+".trafficPolicy", s.GetTrafficPolicy())
	}
	return p.list
}

func (p *problems) policyLimits(at string, policy *networking.TrafficPolicy) {
	p.loadBalancerLimits(at+".loadBalancer", policy.GetLoadBalancer())
	p.outlierLimits(at+".outlierDetection", policy.GetOutlierDetection())
	p.clientTLSLimits(at+".tls", policy.GetTls())
	p.notFollowed(at, []unmet{
		{policy.GetTunnel() != nil, "tunnel", "requests are answered with 503: connections are not tunnelled"},
		{policy.GetProxyProtocol() != nil, "proxyProtocol", "requests are answered with 503: connections start without a PROXY header"},
		{policy.GetRetryBudget() != nil, "retryBudget", "retries are limited by connectionPool.http.maxRetries only"},
	})
	for i, own := range policy.GetPortLevelSettings() {
		p.policyLimits(fmt.Sprintf("%s.portLevelSettings[%d]", at, i), &networking.TrafficPolicy{
			LoadBalancer: own.GetLoadBalancer(), ConnectionPool: own.GetConnectionPool(),
			OutlierDetection: own.GetOutlierDetection(), Tls: own.GetTls(),
		})
	}
}

func (p *problems) loadBalancerLimits(at string, lb *networking.LoadBalancerSettings) {
	warmup := (lb.GetWarmupDurationSecs() != nil || lb.GetWarmup() != nil) && !WarmsUp(lb)
	p.notFollowed(at, []unmet{
		{lb.GetZoneAwareLbSetting() != nil, "zoneAwareLbSetting", "instances of all zones are treated alike"},
		{warmup, "warmup", "new instances get their full share at once: only ROUND_ROBIN and LEAST_REQUEST have a warm-up, of more than 0s"},
	})
}

func (p *problems) outlierLimits(at string, o *networking.OutlierDetection) {
	p.notFollowed(at, []unmet{
		{len(o.GetOutlierDetectionHttpErrorCodes()) > 0, "outlierDetectionHttpErrorCodes", "every 5xx counts"},
	})
}

func (p *problems) clientTLSLimits(at string, tls *networking.ClientTLSSettings) {
	p.notFollowed(at, []unmet{
		{RevokesUnverified(tls), "caCrl", "requests are answered with 503: with insecureSkipVerify there is no authority whose revocations count"},
	})
}
