package schema

import (
	"cmp"
	"fmt"
	"math/big"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// trafficPolicy checks the policy of a host or subset. A subset without outlier
// detection uses that of the host.
func (p *problems) trafficPolicy(field string, t *networking.TrafficPolicy, ofHost *networking.OutlierDetection) {
	if t == nil {
		return
	}
	if proto.Size(t) == 0 {
		p.required(field, "must set something; leave it out when there is nothing to set")
	}
	p.portPolicy(field, t, cmp.Or(t.OutlierDetection, ofHost))
	ports := map[uint32]int{}
	for i, settings := range t.PortLevelSettings {
		at, number := indexField(field+".portLevelSettings", i), settings.GetPort().GetNumber()
		if first, ok := ports[number]; ok {
			p.warn(at, fmt.Sprintf("has no effect: the port is already in %s.portLevelSettings[%d]", field, first))
		} else {
			ports[number] = i
		}
		if settings.LoadBalancer == nil && settings.ConnectionPool == nil && settings.OutlierDetection == nil && settings.Tls == nil {
			p.required(at, "must set something for the port: loadBalancer, connectionPool, outlierDetection or tls")
		}
		p.portPolicy(at, settings, settings.OutlierDetection)
	}
}

// portsWithoutTLS warns of the settings of ports that turn TLS off without saying so: they
// replace all that the policies above say for the port. ofHost is the policy above that of a
// subset, nil for the policy of the host.
func (p *problems) portsWithoutTLS(field string, t, ofHost *networking.TrafficPolicy) {
	for i, settings := range t.GetPortLevelSettings() {
		number := settings.GetPort().GetNumber()
		above := cmp.Or(t.GetTls(), tlsAt(ofHost, number))
		if first := portSettings(t, number); settings == first && settings.Tls == nil && encrypts(above) {
			p.suspect(indexField(field+".portLevelSettings", i)+".tls", fmt.Sprintf(
				"is left out, so connections to port %d are in plain text: the settings of a port replace the tls above them as a whole; repeat it, or say mode DISABLE", number))
		}
	}
}

// tlsAt returns the TLS settings of a policy for a port.
func tlsAt(t *networking.TrafficPolicy, port uint32) *networking.ClientTLSSettings {
	if own := portSettings(t, port); own != nil {
		return own.GetTls()
	}
	return t.GetTls()
}

// portSettings returns the settings of a policy that are for one port alone, nil for none.
func portSettings(t *networking.TrafficPolicy, port uint32) *networking.TrafficPolicy_PortTrafficPolicy {
	for _, own := range t.GetPortLevelSettings() {
		if own.GetPort().GetNumber() == port {
			return own
		}
	}
	return nil
}

func encrypts(tls *networking.ClientTLSSettings) bool {
	return tls != nil && tls.GetMode() != networking.ClientTLSSettings_DISABLE
}

// policy has the settings common to a host and one of its ports.
type policy interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetConnectionPool() *networking.ConnectionPoolSettings
	GetOutlierDetection() *networking.OutlierDetection
	GetTls() *networking.ClientTLSSettings
}

func (p *problems) portPolicy(field string, t policy, detection *networking.OutlierDetection) {
	p.loadBalancer(field+".loadBalancer", t.GetLoadBalancer())
	p.locality(field+".loadBalancer.localityLbSetting", t.GetLoadBalancer().GetLocalityLbSetting(), detection)
	p.connectionPool(field+".connectionPool", t.GetConnectionPool())
	p.outlierDetection(field+".outlierDetection", t.GetOutlierDetection())
	p.clientTLS(field+".tls", t.GetTls())
}

// mostRingPoints is Envoy's limit.
const mostRingPoints = 8 << 20

func (p *problems) loadBalancer(field string, l *networking.LoadBalancerSettings) {
	maglev := l.GetConsistentHash().GetMaglev()
	if size := maglev.GetTableSize(); maglev != nil && (size >= 5000011 || !new(big.Int).SetUint64(size).ProbablyPrime(0)) {
		p.invalidValue(field+".consistentHash.maglev.tableSize", size, "must be a prime below 5000011, such as 65537")
	}
	if hash := l.GetConsistentHash(); hash != nil && hash.HashKey == nil {
		p.warn(field+".consistentHash", "is a random choice without one of httpHeaderName, httpCookie, useSourceIp, httpQueryParameterName")
	}
	for name, size := range map[string]uint64{
		//lint:ignore SA1019 Old objects have it.
		".minimumRingSize":          l.GetConsistentHash().GetMinimumRingSize(),
		".ringHash.minimumRingSize": l.GetConsistentHash().GetRingHash().GetMinimumRingSize(),
	} {
		if size > mostRingPoints {
			p.invalidValue(field+".consistentHash"+name, size, fmt.Sprintf("must be at most %d", mostRingPoints))
		}
	}
	if cookie := l.GetConsistentHash().GetHttpCookie(); cookie != nil && cookie.Name != "" && !headerToken.MatchString(cookie.Name) {
		p.invalidValue(field+".consistentHash.httpCookie.name", cookie.Name, "must be the name of a cookie: letters, digits and !#$%&'*+-.^_|~`, without spaces")
	}
	const attributes = ".consistentHash.httpCookie.attributes"
	seen := map[string]int{}
	for i, a := range l.GetConsistentHash().GetHttpCookie().GetAttributes() {
		repeated(p, indexField(field+attributes, i)+".name", field+attributes, seen, a.GetName(), i)
	}
	if l.GetWarmup() != nil && l.GetWarmupDurationSecs() != nil {
		p.suspect(field+".warmupDurationSecs", "has no effect together with warmup")
	}
}

func (p *problems) connectionPool(field string, c *networking.ConnectionPoolSettings) {
	if c != nil && c.Http == nil && c.Tcp == nil {
		p.required(field, "must set tcp, http or both")
	}
	http := c.GetHttp()
	if http.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE && http.GetUseClientProtocol() {
		p.forbidden(field+".http.useClientProtocol", "cannot be given together with h2UpgradePolicy UPGRADE: the protocol of the caller is kept, or it is not")
	}
}

func (p *problems) outlierDetection(field string, o *networking.OutlierDetection) {
	if o.GetConsecutiveLocalOriginFailures().GetValue() > 0 && !o.GetSplitExternalLocalOriginErrors() {
		p.invalid(field+".consecutiveLocalOriginFailures", "must go with splitExternalLocalOriginErrors: true, without which such failures are not counted apart")
	}
	//lint:ignore SA1019 Old objects have it.
	old := o.GetConsecutiveErrors() != 0
	if old && (o.GetConsecutive_5XxErrors() != nil || o.GetConsecutiveGatewayErrors() != nil) {
		p.suspect(field+".consecutiveErrors", "has no effect together with consecutive5xxErrors or consecutiveGatewayErrors")
	}
}
