package mesh

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// V1Compatibility has one switch for each accident of Pilot 0.7.1 that a mesh
// may have come to rely on. True keeps what Pilot did, false is the sane
// reading; docs/v1-compatibility.md explains both. The names in the file are
// those of the fields, with a small first letter.
type V1Compatibility struct {
	// URIRegexAsHeader compares the uri expression of a RouteRule with a
	// header of the name "uri", which no request has.
	URIRegexAsHeader bool
	// EdgeMatchesLost leaves out all routes of a VirtualService that have a
	// match, at ingresses and gateways.
	EdgeMatchesLost bool
	// EdgeFaultsLost injects no faults at ingresses and gateways.
	EdgeFaultsLost bool
	// IngressCatchAllLost leaves out the route of a service for all other
	// requests, at ingresses, when it has a further route.
	IngressCatchAllLost bool
	// UnsetPercentageIsAll injects a fault of a VirtualService without a
	// percentage into every request.
	UnsetPercentageIsAll bool
	// DestinationPortIgnored sends to the port of the same name, whatever
	// destination.port of a VirtualService says.
	DestinationPortIgnored bool
	// UnknownSubsetIsAll sends requests for a subset that no DestinationRule
	// has to all instances.
	UnknownSubsetIsAll bool
	// ShortNamesByCaller completes host names without a dot in
	// VirtualServices and DestinationRules by the domain of each proxy.
	ShortNamesByCaller bool
	// AnyNamespaceRules has VirtualServices and DestinationRules of every
	// namespace hold for every host and caller, the first by namespace and
	// name, and looks at no exportTo.
	AnyNamespaceRules bool
	// VirtualServiceDefaults has routes of a VirtualService without retries try
	// once, and those with retries try again after every 5xx; a redirect to a
	// path loses the query. Requests that none of its routes takes go to the
	// service.
	VirtualServiceDefaults bool
	// DestinationRuleDefaults fills in Pilot's limits, and not Istio's
	// defaults, for what a DestinationRule does not name.
	DestinationRuleDefaults bool
	// DestinationRuleTLS has TLS of a DestinationRule without caCertificates
	// verify nobody, ask for the name of the host whatever a request names, and
	// for ISTIO_MUTUAL takes certificates in /etc/certs where the mesh settings
	// name none.
	DestinationRuleTLS bool
	// SubsetsByLabels has subsets of equal labels share one cluster, under the
	// policy of the first, and one without labels that of the host.
	SubsetsByLabels bool
	// SubsetsDropOutlierDetection takes the outlier detection of a
	// DestinationRule from a subset whose own policy has none.
	SubsetsDropOutlierDetection bool
	// ExternalRouteEndpoints sends all destinations in the VirtualService of
	// an external host to the endpoints of that host.
	ExternalRouteEndpoints bool
	// ExternalNameHTTPSAsHTTP takes what arrives for an HTTPS port of a
	// service with an external name as plain HTTP.
	ExternalNameHTTPSAsHTTP bool
	// ExternalNamePoliciesIgnored applies no policy to a service with an
	// external name.
	ExternalNamePoliciesIgnored bool
	// TCPTakesHTTPPort gives a port that a TCP service without an address
	// shares with HTTP services to the TCP service.
	TCPTakesHTTPPort bool
	// UnknownDestinationsClosed answers 404 to requests to hosts that the
	// registry does not know, and closes connections to such ports, whatever
	// outboundTrafficPolicy says.
	UnknownDestinationsClosed bool
	// HostsAsWritten has proxies of the v1 API take a host with a final dot
	// for another host than the one without, and all proxies take any text for
	// a host.
	HostsAsWritten bool
	// ProxyPortBare leaves the HTTP proxy port of proxies of the v1 API as
	// Pilot had it: it answers 404 to requests in absolute form, and injects
	// no faults.
	ProxyPortBare bool
}

// AsPilot has every switch on.
func AsPilot() V1Compatibility {
	var c V1Compatibility
	for _, on := range c.switches() {
		*on = true
	}
	return c
}

// switches are the fields by their names in the file.
func (c *V1Compatibility) switches() map[string]*bool {
	v := reflect.ValueOf(c).Elem()
	out := map[string]*bool{}
	for i := range v.NumField() {
		out[settingName(v.Type().Field(i).Name)] = v.Field(i).Addr().Interface().(*bool)
	}
	return out
}

// settingName spells a field as the file has it: a leading run of capitals is
// one word, so TCPTakesHTTPPort is tcpTakesHTTPPort.
func settingName(field string) string {
	capitals := strings.IndexFunc(field, unicode.IsLower)
	if capitals > 1 {
		return strings.ToLower(field[:capitals-1]) + field[capitals-1:]
	}
	first, size := utf8.DecodeRuneInString(field)
	return string(unicode.ToLower(first)) + field[size:]
}
