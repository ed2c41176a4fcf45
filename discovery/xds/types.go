package xds

import "github.com/pilot-api/pilot-api/explain"

// resourceTypes are the types by URL, each as explain.Types has it and as the
// protocol's service for it is called. All other lists of types follow from this one.
var resourceTypes = map[string]struct{ name, service string }{
	ClusterType:  {"clusters", "cds"},
	ListenerType: {"listeners", "lds"},
	RouteType:    {"routes", "rds"},
	EndpointType: {"endpoints", "eds"},
	SecretType:   {"secrets", "sds"},
}

// ConfigTypes are the types of configuration, in words.
var ConfigTypes = explain.Types

// NameOf is what people call the type of a URL.
func NameOf(typeURL string) string { return resourceTypes[typeURL].name }

// ServiceOf is the protocol's service for the type of a URL, in short, such as cds;
// "" for a type that is not served.
func ServiceOf(typeURL string) string { return resourceTypes[typeURL].service }

// Services are those of all types.
func Services() (all []string) {
	for _, t := range resourceTypes {
		all = append(all, t.service)
	}
	return all
}

// Type URLs of the v3 resources served.
const (
	ClusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	SecretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	ListenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)
