package xds

import "github.com/pilot-api/pilot-api/explain"

// resourceTypes are the types by URL, each with its name in explain.Types and the name of
// the protocol's service for it. All other lists of types follow from this one.
var resourceTypes = map[string]struct{ name, service string }{
	ClusterType:  {"clusters", "cds"},
	ListenerType: {"listeners", "lds"},
	RouteType:    {"routes", "rds"},
	EndpointType: {"endpoints", "eds"},
	SecretType:   {"secrets", "sds"},
}

// ConfigTypes are the types of configuration, in words.
var ConfigTypes = explain.Types

// NameOf returns the name that people use for the type of a URL.
func NameOf(typeURL string) string { return resourceTypes[typeURL].name }

// ServiceOf returns the short name, such as cds, of the protocol's service for the type of
// a URL, or "" for a type that is not served.
func ServiceOf(typeURL string) string {
	if typeURL == VirtualHostType {
		return virtualHostService
	}
	return resourceTypes[typeURL].service
}

const virtualHostService = "vhds"

// Services returns the short names of the services of all types.
func Services() (all []string) {
	for _, t := range resourceTypes {
		all = append(all, t.service)
	}
	return append(all, virtualHostService)
}

// Type URLs of the v3 resources served.
const (
	ClusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	SecretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	ListenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	// VirtualHostType is the type by which an Envoy asks for hosts that its route tables
	// lack. The tables have the virtual hosts; a response only says that they are complete.
	VirtualHostType = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
)
