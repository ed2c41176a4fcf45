package mesh

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// V1Compatibility has one switch for each quirk of Pilot 0.7.1 that a mesh may rely
// on. True keeps Pilot's behaviour, false is the correct behaviour;
// docs/v1-compatibility.md explains both. The names in the file are those of the
// fields, with a lower-case first letter.
type V1Compatibility struct {
	// URIRegexAsHeader compares the uri expression of a RouteRule with a header
	// named "uri", which no request has.
	URIRegexAsHeader bool
	// EdgeMatchesLost omits all routes of a VirtualService that have a match, at
	// ingresses and gateways.
	EdgeMatchesLost bool
	// EdgeFaultsLost injects no faults at ingresses and gateways.
	EdgeFaultsLost bool
	// IngressCatchAllLost omits the catch-all route of a service at ingresses if
	// the service has another route.
	IngressCatchAllLost bool
	// UnsetPercentageIsAll injects a fault of a VirtualService into every request
	// if the fault has no percentage.
	UnsetPercentageIsAll bool
	// DestinationPortIgnored sends requests to the port of the same name and
	// ignores destination.port of a VirtualService.
	DestinationPortIgnored bool
	// UnknownSubsetIsAll sends requests for a subset that no DestinationRule
	// defines to all instances.
	UnknownSubsetIsAll bool
	// ShortNamesByCaller completes host names without a dot in VirtualServices and
	// DestinationRules with the domain of each proxy.
	ShortNamesByCaller bool
	// AnyNamespaceRules applies VirtualServices, DestinationRules, RouteRules and
	// DestinationPolicies of every namespace to every host and caller, the first by
	// namespace and name, and ignores exportTo.
	AnyNamespaceRules bool
	// VirtualServiceDefaults makes one attempt on routes of a VirtualService
	// without retries, and retries after every 5xx on those with retries. A
	// redirect to a path drops the query. Requests that match none of its routes go
	// to the service.
	VirtualServiceDefaults bool
	// DestinationRuleDefaults uses Pilot's limits instead of Istio's defaults for
	// settings that a DestinationRule omits.
	DestinationRuleDefaults bool
	// DestinationRuleTLS verifies no endpoint if TLS of a DestinationRule has no
	// caCertificates, asks for the name of the host whatever a request names, and
	// for ISTIO_MUTUAL uses certificates in /etc/certs if the mesh settings name
	// none.
	DestinationRuleTLS bool
	// SubsetsByLabels lets subsets with equal labels share one cluster, under the
	// policy of the first; a subset without labels shares that of the host.
	SubsetsByLabels bool
	// SubsetsDropOutlierDetection drops the outlier detection of a DestinationRule
	// for a subset whose own policy has none.
	SubsetsDropOutlierDetection bool
	// ExternalRouteEndpoints sends requests for all destinations in the
	// VirtualService of an external host to the endpoints of that host.
	ExternalRouteEndpoints bool
	// ExternalNameHTTPSAsHTTP treats traffic to an HTTPS port of a service with an
	// external name as plain HTTP.
	ExternalNameHTTPSAsHTTP bool
	// ExternalNamePoliciesIgnored applies no policy to a service with an external
	// name.
	ExternalNamePoliciesIgnored bool
	// TCPTakesHTTPPort gives a port that a TCP service without an address shares
	// with HTTP services to the TCP service.
	TCPTakesHTTPPort bool
	// UnknownDestinationsClosed answers requests to hosts that are not in the
	// registry with 404, and closes connections to such ports, whatever
	// outboundTrafficPolicy says.
	UnknownDestinationsClosed bool
	// HostsAsWritten makes proxies of the v1 API treat a host with a final dot as
	// another host than the one without, and makes all proxies accept any text as a
	// host.
	HostsAsWritten bool
	// ProxyPortBare makes the HTTP proxy port of proxies of the v1 API answer
	// requests in absolute form with 404 and inject no faults, as in Pilot.
	ProxyPortBare bool
}

// AsPilot returns a value with every switch on.
func AsPilot() V1Compatibility {
	var c V1Compatibility
	for _, on := range c.switches() {
		*on = true
	}
	return c
}

// switches returns the fields by their names in the file.
func (c *V1Compatibility) switches() map[string]*bool {
	v := reflect.ValueOf(c).Elem()
	out := map[string]*bool{}
	for i := range v.NumField() {
		out[settingName(v.Type().Field(i).Name)] = v.Field(i).Addr().Interface().(*bool)
	}
	return out
}

// settingName returns the name of a field in the file. A leading run of capitals is
// one word, so TCPTakesHTTPPort becomes tcpTakesHTTPPort.
func settingName(field string) string {
	capitals := strings.IndexFunc(field, unicode.IsLower)
	if capitals > 1 {
		return strings.ToLower(field[:capitals-1]) + field[capitals-1:]
	}
	first, size := utf8.DecodeRuneInString(field)
	return string(unicode.ToLower(first)) + field[size:]
}
