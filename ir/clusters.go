package ir

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// ClusterType says how a cluster finds its endpoints.
type ClusterType string

const (
	// Registry clusters ask this server for endpoints by EndpointKey, as they
	// change.
	Registry ClusterType = "registry"
	// StaticHosts clusters have IP addresses in Hosts.
	StaticHosts ClusterType = "static"
	// StrictDNS clusters have names in Hosts. Each is resolved to all its
	// addresses.
	StrictDNS ClusterType = "strict-dns"
	// LogicalDNS clusters have one name in Hosts. New connections go to its first
	// address. Existing connections stay when that address changes.
	LogicalDNS ClusterType = "logical-dns"
	// OriginalDestination clusters forward to the destination of the captured
	// connection.
	OriginalDestination ClusterType = "original-destination"
)

// LoadBalancer is the way a cluster picks an endpoint.
type LoadBalancer string

const (
	// BalancerByDefault means that no balancer is configured. It is the historical
	// default of the proxies of an Envoy version.
	BalancerByDefault LoadBalancer = ""

	RoundRobin   LoadBalancer = "round-robin"
	LeastRequest LoadBalancer = "least-request"
	Random       LoadBalancer = "random"
	// RingHash and Maglev need a Hash.
	RingHash LoadBalancer = "ring-hash"
	Maglev   LoadBalancer = "maglev"
)

// Cluster is a set of equivalent endpoints.
type Cluster struct {
	// Name is the full name. Back-ends shorten it to the length that their Envoy
	// accepts (envoy.ClusterName), in every place it is used.
	Name string
	Type ClusterType
	// EndpointKey is the service key (mesh.ServiceKey as text) by which to ask for
	// endpoints. Other outbound types have it too, for information.
	EndpointKey string
	Hosts       []Endpoint // inline
	// DestinationPort replaces the port of the connection's destination, for
	// OriginalDestination; 0 keeps it.
	DestinationPort int
	// ConnectTimeout of 0 means the historical default of the back-end's proxies.
	ConnectTimeout time.Duration
	LoadBalancer   LoadBalancer
	Hash           *Hash
	Warmup         *Warmup // for RoundRobin and LeastRequest; nil for none
	// Localities say which endpoints callers prefer; nil for none. Order is their result
	// for the callers of this configuration; nil treats all endpoints alike. Hosts are
	// already arranged by Order.
	Localities *Localities
	Order      *Order
	HTTP2      bool
	TLS        *ClientTLS
	// MutualTLS is the TLS of connections to the endpoints that have Endpoint.MutualTLS. Those
	// to others are in plain text. TLS is nil if it is set. A back-end that cannot express it
	// uses plain text for all.
	MutualTLS *ClientTLS

	// MaxRequestsPerConnection of 0 means no limit.
	MaxRequestsPerConnection int
	Connections              Connections
	// CircuitBreaker is nil if no limits are configured. Proxies then have the
	// historical limits of their Envoy version.
	CircuitBreaker   *CircuitBreaker
	OutlierDetection *OutlierDetection
	HealthCheck      *HealthCheck

	Origins []diag.Ref
}

// SocketScheme is the prefix of an endpoint's Host that is a Unix socket.
const SocketScheme = "unix://"

// Socket returns the path or abstract name of a Unix socket, and whether the
// endpoint is one.
func (e Endpoint) Socket() (path string, ok bool) { return strings.CutPrefix(e.Host, SocketScheme) }

// Nobody is the endpoint key of a closed cluster. It is Istio's name of a cluster
// without endpoints. No service has it as its host, because hosts are in lower
// case.
const Nobody = "BlackHoleCluster"

// Passthrough is Istio's name of the cluster for undeclared hosts. It forwards to
// the destination of the captured connection.
const Passthrough = "PassthroughCluster"

// Closed returns a cluster that replaces one that cannot be built as written. It
// has no endpoints, so that requests get 503 and nothing goes out in another way.
// It has no other settings of the cluster that could be wrong.
func (c *Cluster) Closed() *Cluster {
	return &Cluster{Name: c.Name, Type: StaticHosts, EndpointKey: Nobody, Origins: c.Origins}
}

// HostPort is an IP address, or a name to resolve, and a port.
type HostPort struct {
	Host string
	Port int
}

// String returns "host:port", with an IPv6 address in brackets.
func (h HostPort) String() string { return net.JoinHostPort(h.Host, strconv.Itoa(h.Port)) }

// ClientTLS makes connections to the endpoints use TLS. The zero value is TLS
// without verification.
type ClientTLS struct {
	// CertificateFile and KeyFile hold the certificate that the proxy presents.
	// Both are set or neither. SecretName names a Secret instead.
	CertificateFile, KeyFile string
	SecretName               string `json:",omitempty"`
	// SDS, if it is set, is where the proxy takes SecretName from, in place of this server.
	SDS LocalSDS `json:",omitzero"`
	// CAFile holds the authorities that verify endpoints. CASecretName names a
	// Secret instead. If neither is set, endpoints are not verified, and the fields
	// about verification below must be unset.
	CAFile       string
	CASecretName string `json:",omitempty"`
	// CRLFile holds revoked certificates of the authorities; "" for none.
	CRLFile string
	// SNI is the requested server name; "" for none.
	SNI string
	// AutoSNI uses the host of each request as the server name, unless it is an
	// address.
	AutoSNI bool
	// SubjectAltNames are the names of which an endpoint must have at least one. If
	// empty, any name is accepted.
	SubjectAltNames []string
	// URIPrefix is the beginning that a URI of an endpoint must have; "" for any.
	URIPrefix string `json:",omitempty"`
	// ALPN are the application protocols that are offered; none for those of the proxy.
	ALPN []string `json:",omitempty"`
	// AutoSAN requires that an endpoint has the name of the host of the request.
	AutoSAN bool
}

// CircuitBreaker limits what a cluster may use; 0 leaves Envoy's default.
type CircuitBreaker struct {
	MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries int
}

// OutlierDetection ejects failing endpoints; zero leaves Envoy's default.
type OutlierDetection struct {
	// ConsecutiveErrors is the number of 5xx responses in a row that ejects,
	// GatewayErrors that of 502, 503 and 504. Nil leaves Envoy's default, which for
	// GatewayErrors is never; 0 is never.
	ConsecutiveErrors, GatewayErrors *int

	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionPercent int

	// MaxEjectionTime limits the growth of repeated ejections; 0 is no limit.
	MaxEjectionTime time.Duration
	// MinHealthPercent is the percentage of endpoints that must be healthy. Below
	// it all endpoints get requests; 0 is never. Nil leaves Envoy's default.
	MinHealthPercent *int

	// LocalOrigin counts local failures, such as failures to connect, apart from
	// the responses of endpoints. LocalErrors is the number in a row that ejects;
	// nil leaves Envoy's default, 0 is never.
	LocalOrigin bool
	LocalErrors *int
	// AnswersOnly turns off Envoy's additional ejection of endpoints whose success
	// rate is lower than that of the others.
	AnswersOnly bool
}

// Endpoint is one member of a cluster.
type Endpoint struct {
	// Host is an IP address. For StrictDNS and LogicalDNS it may also be a name to
	// resolve. For StaticHosts it may also be unix:// and the path of a socket on
	// the proxy's machine, or @ and its abstract name, without a port.
	Host   string
	Port   int
	Zone   string // its locality, "" if unknown
	Weight int    // 0 if unset, which means 1
	// Labels are set if an Order may need them.
	Labels map[string]string
	// Priority is 0 for the endpoints that are used first. Others are used when
	// those fail.
	Priority int
	// Share is the weight of its locality, 0 if localities have none.
	Share int
	// MutualTLS is set if callers may use Cluster.MutualTLS.
	MutualTLS bool
}

// Address returns the endpoint's address, which is unique within a cluster.
func (e Endpoint) Address() HostPort { return HostPort{e.Host, e.Port} }
