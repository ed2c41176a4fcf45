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
	// Registry: asked from this server by EndpointKey, as they change.
	Registry ClusterType = "registry"
	// StaticHosts: Hosts holds IP addresses.
	StaticHosts ClusterType = "static"
	// StrictDNS: Hosts holds names, each resolved to all its addresses.
	StrictDNS ClusterType = "strict-dns"
	// LogicalDNS: Hosts holds one name, whose first address is where new
	// connections go. Those that are there stay when it is another one.
	LogicalDNS ClusterType = "logical-dns"
	// OriginalDestination: where the captured connection was going.
	OriginalDestination ClusterType = "original-destination"
)

// LoadBalancer picks an endpoint.
type LoadBalancer string

const (
	// BalancerByDefault is the one that proxies of the Envoy version have had:
	// nobody asked for another.
	BalancerByDefault LoadBalancer = ""

	RoundRobin   LoadBalancer = "round-robin"
	LeastRequest LoadBalancer = "least-request"
	Random       LoadBalancer = "random"
	// RingHash and Maglev go with a Hash.
	RingHash LoadBalancer = "ring-hash"
	Maglev   LoadBalancer = "maglev"
)

// Cluster is a set of endpoints that are as good as each other.
type Cluster struct {
	// Name is unabridged; back-ends cut it to what their Envoy takes
	// (envoy.ClusterName), in every place it is used.
	Name string
	Type ClusterType
	// EndpointKey is the service key (mesh.ServiceKey in text) to ask
	// endpoints by; also given, for information, on other outbound types.
	EndpointKey string
	Hosts       []Endpoint // inline
	// DestinationPort is in place of the one that the connection was going to,
	// for OriginalDestination; 0 leaves it.
	DestinationPort int
	// ConnectTimeout of 0 is the one that proxies of the back-end have always had.
	ConnectTimeout time.Duration
	LoadBalancer   LoadBalancer
	Hash           *Hash
	Warmup         *Warmup // of RoundRobin and LeastRequest; nil for none
	// Localities say which endpoints callers prefer; nil for none. Order is what
	// they come to for the callers of this configuration: nil has all endpoints
	// alike. Hosts are arranged by it already.
	Localities *Localities
	Order      *Order
	HTTP2      bool
	TLS        *ClientTLS

	// MaxRequestsPerConnection of 0 means no limit.
	MaxRequestsPerConnection int
	Connections              Connections
	// CircuitBreaker is nil where nobody said how much is too much: proxies then
	// have the limits that those of the Envoy version have had.
	CircuitBreaker   *CircuitBreaker
	OutlierDetection *OutlierDetection
	HealthCheck      *HealthCheck

	Origins []diag.Ref
}

// SocketScheme begins the Host of an endpoint behind a Unix socket.
const SocketScheme = "unix://"

// Socket is the path or abstract name of a Unix socket.
func (e Endpoint) Socket() (path string, ok bool) { return strings.CutPrefix(e.Host, SocketScheme) }

// Nobody is the endpoint key of what is closed, Istio's name of a cluster without
// endpoints. No service has it as its host, for hosts are in small letters.
const Nobody = "BlackHoleCluster"

// Passthrough is Istio's name of the cluster of what nobody declared: it goes
// where the captured connection was going.
const Passthrough = "PassthroughCluster"

// Closed is the cluster in place of one that cannot be as written: it has no
// endpoints, so that requests get 503 and nothing goes out in another way. It has
// nothing else of the cluster that could be wrong.
func (c *Cluster) Closed() *Cluster {
	return &Cluster{Name: c.Name, Type: StaticHosts, EndpointKey: Nobody, Origins: c.Origins}
}

// HostPort is an IP address, or a name to resolve, and a port.
type HostPort struct {
	Host string
	Port int
}

// String is "host:port", an IPv6 address in brackets.
func (h HostPort) String() string { return net.JoinHostPort(h.Host, strconv.Itoa(h.Port)) }

// ClientTLS makes connections to the endpoints use TLS. The zero value is TLS
// without verification.
type ClientTLS struct {
	// CertificateFile and KeyFile are what the proxy shows, or the Secret of a name;
	// both files or neither.
	CertificateFile, KeyFile string
	SecretName               string `json:",omitempty"`
	// CAFile holds the authorities that endpoints are verified by, or the Secret named
	// CASecretName; "" for no verification. What follows of verification needs one.
	CAFile       string
	CASecretName string `json:",omitempty"`
	// CRLFile holds revoked certificates of the authorities; "" for none.
	CRLFile string
	// SNI is the server name asked for; "" for none.
	SNI string
	// AutoSNI: it is the host that each request names, unless that is an address.
	AutoSNI bool
	// SubjectAltNames are the names of which an endpoint must have one; none
	// means any.
	SubjectAltNames []string
	// AutoSAN: an endpoint must have the name of the host that the request names.
	AutoSAN bool
}

// CircuitBreaker bounds what a cluster may use; 0 leaves Envoy's default.
type CircuitBreaker struct {
	MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries int
}

// OutlierDetection ejects failing endpoints; zero leaves Envoy's default.
type OutlierDetection struct {
	// ConsecutiveErrors are answers of 5xx in a row, GatewayErrors those of 502,
	// 503 and 504. Nil leaves Envoy's default, which for the latter is never; 0
	// is never.
	ConsecutiveErrors, GatewayErrors *int

	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionPercent int

	// MaxEjectionTime is what a repeated ejection grows to; 0 is no limit.
	MaxEjectionTime time.Duration
	// MinHealthPercent of the endpoints must be healthy, else all of them get
	// requests; 0 is never. Nil leaves Envoy's default.
	MinHealthPercent *int

	// LocalOrigin has failures to connect and the like counted apart from what
	// endpoints answer, by LocalErrors in a row; nil leaves Envoy's default, 0 is
	// never.
	LocalOrigin bool
	LocalErrors *int
	// AnswersOnly: nobody is ejected for answering fewer requests well than the
	// others, as Envoy does beside.
	AnswersOnly bool
}

// Endpoint is one member of a cluster.
type Endpoint struct {
	// Host is an IP address; of StrictDNS and LogicalDNS also a name to resolve, of StaticHosts
	// also unix:// and the path of a socket on the proxy's machine, or @ and its
	// abstract name, without a port.
	Host   string
	Port   int
	Zone   string // its locality, "" when unknown
	Weight int    // 0 when unset, which is 1
	// Labels are there where an Order may ask for them.
	Labels map[string]string
	// Priority is 0 for those that are used first; others when those fail.
	Priority int
	// Share is the weight of its locality, 0 where localities have none.
	Share int
}

// Address is where the endpoint is. A cluster has one endpoint there.
func (e Endpoint) Address() HostPort { return HostPort{e.Host, e.Port} }
