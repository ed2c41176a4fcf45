// Package envoy has the parts that both versions of the API share: the names that Pilot
// used, which dashboards and people know, and the bootstrap with which an Envoy uses this
// server. It imports no protobuf messages, so that istioctl stays small. The
// encodings are in envoy/v1 and envoy/v3.
package envoy

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
	"github.com/pilot-api/pilot-api/ir"
)

// DiscoveryCluster is the bootstrap cluster that leads to this server in v3
// configuration; EDS and RDS config sources name it.
const DiscoveryCluster = "pilot-api"

// RDSClusterV1 is the bootstrap cluster that v1 listeners fetch routes from.
const RDSClusterV1 = "rds"

// Prefixes of statistics, the same for all listeners of a kind.
const (
	StatPrefixHTTP  = "http"
	StatPrefixTCP   = "tcp"
	StatPrefixMongo = "mongo"
)

// RetryOn are the retry conditions that ir.Retry promises.
const RetryOn = "5xx,connect-failure,refused-stream"

// A v1 Envoy rejects names that are longer than its --max-obj-name-len. Pilot's
// Envoys ran with 189.
const (
	maxNameLength = 189
	keptLength    = maxNameLength - 2*sha1.Size
)

// ClusterName returns the name of a cluster in every answer: the full name or, if
// that is over 189 bytes, its first 149 bytes and the SHA-1 of the whole in hex
// (conformance/pilot-v1, "Names"). v3 has no limit, but keeps the same names.
func ClusterName(full string) string {
	if len(full) <= maxNameLength {
		return full
	}
	sum := sha1.Sum([]byte(full))
	return full[:keptLength] + hex.EncodeToString(sum[:])
}

// ListenerName returns "virtual" for the listener that hands off, else kind, IP and
// port: "http_0.0.0.0_80", "tcp_…", "mongo_…". The IP must be filled in.
func ListenerName(l *ir.Listener) string {
	kind := StatPrefixTCP
	switch {
	case l.UseOriginalDst:
		return "virtual"
	case l.HTTP != nil || slices.ContainsFunc(l.Chains, func(c *ir.FilterChain) bool { return c.HTTP != nil }):
		kind = StatPrefixHTTP
	case l.TCP != nil && l.TCP.Mongo:
		kind = StatPrefixMongo
	}
	return fmt.Sprintf("%s_%s_%d", kind, l.IP, l.Port)
}

// HeaderValue encodes a header value that Envoy adds literally. An unescaped
// percent sign would begin an operator, and an unknown operator rejects the whole
// table.
func HeaderValue(literal string) string { return headerformat.Of(literal) }

// EndpointsName returns the name by which an Envoy asks for the endpoints of a
// cluster: their key in the registry, and their order. The answer depends only on
// the name and the registry.
func EndpointsName(c *ir.Cluster) string {
	if c.Order == nil {
		return c.EndpointKey
	}
	return c.EndpointKey + "|" + c.Order.String()
}

// ParseEndpointsName parses an EndpointsName. It never fails: an invalid order
// becomes part of a key that does not exist.
func ParseEndpointsName(name string) (order *ir.Order, key string) {
	at := strings.LastIndex(name, "|{")
	if at < 0 {
		return nil, name
	}
	if order = ir.ParseOrder(name[at+1:]); order == nil {
		return nil, name
	}
	return order, name[:at]
}
