package discovery

import "github.com/pilot-api/pilot-api/discovery/xds"

// Answer is an encoded answer to a poll.
type Answer = xds.Answer

// Response is what a stream sends about one type.
type Response = xds.Response

// Type URLs of the v3 resources served.
const (
	ClusterType  = xds.ClusterType
	EndpointType = xds.EndpointType
	SecretType   = xds.SecretType
	ListenerType = xds.ListenerType
	RouteType    = xds.RouteType
)

// ConfigTypes are the types of configuration, in words.
var ConfigTypes = xds.ConfigTypes

// ServiceOf is the protocol's service for the type of a URL, in short, such as cds;
// "" for a type that is not served.
func ServiceOf(typeURL string) string { return xds.ServiceOf(typeURL) }

// Services are those of all types.
func Services() []string { return xds.Services() }
