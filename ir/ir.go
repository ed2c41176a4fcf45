// Package ir says what one proxy must do, in words that belong neither to the
// config kinds nor to any Envoy version: listeners that take traffic, route
// tables that decide, clusters that reach endpoints. Front-ends (package
// compile) write it, back-ends (envoy/v1, envoy/v3) spell it.
//
// Every part names the objects it came from (Origins), so that a complaint
// about generated configuration finds its way back to an author. Everything is
// in a deterministic order. A Config is immutable once compile returned it:
// it is shared by all proxies with the same view.
package ir

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// Config is all that proxies of one view do.
type Config struct {
	// Listeners in no particular order and possibly with equal addresses;
	// ListenersAt gives the final list for one proxy.
	Listeners []*Listener
	// RouteTables sorted by name; the ones that HTTP listeners refer to, and
	// those of ports that have routes and no listener.
	RouteTables []*RouteTable
	// Clusters sorted by name, names unique.
	Clusters []*Cluster
	// Secrets sorted by name, names unique: those that listeners and clusters refer
	// to.
	Secrets []*Secret
	// RouteDelay is how long a proxy waits between polls for route tables,
	// Delay the same for everything else. How it is jittered is Envoy's.
	RouteDelay, Delay time.Duration
}

// Direction of traffic through a listener, seen from the workload.
type Direction string

const (
	Outbound Direction = "outbound" // from the workload into the mesh
	Inbound  Direction = "inbound"  // to the workload
	Gateway  Direction = "gateway"  // into the mesh, at its edge
)

// Listener takes connections at one address. Exactly one of HTTP, TCP, Chains
// and UseOriginalDst is set, but for a TCP beside UseOriginalDst: that takes what
// no listener is for.
type Listener struct {
	// IP to listen at; "" means the proxy's own address, so that proxies
	// that differ only in address share a Config.
	IP   string
	Port int
	// Bind opens the port. A listener that does not bind only takes
	// connections handed to it by the UseOriginalDst listener.
	Bind      bool
	Direction Direction

	// UseOriginalDst is the listener that captured traffic arrives at: it hands
	// each connection to the listener of its original destination.
	UseOriginalDst bool
	HTTP           *HTTPListener
	TCP            *TCPListener
	TLS            *ServerTLS
	// Chains do different things with connections, by the name that the client
	// asks for: the first of which the name fits. A connection that fits none is
	// closed.
	Chains []*FilterChain

	Origins []diag.Ref
}

// FilterChain is what becomes of the connections for some server names. Exactly
// one of HTTP and TCP is set.
type FilterChain struct {
	// ServerNames as those of a TCPRoute. Where the chain has some, the routes of
	// its TCP have none.
	ServerNames []string
	HTTP        *HTTPListener
	TCP         *TCPListener
	TLS         *ServerTLS

	Origins []diag.Ref
}

// HTTPListener routes requests by a table.
type HTTPListener struct {
	// Table is fetched by its name when Inline is nil.
	Table  string
	Inline *RouteTable
	// ForwardProxy: requests come in absolute form (GET http://host/…).
	ForwardProxy bool
	// AbsoluteURLs has a ForwardProxy understand that form and inject faults there
	// also where it must be told so, and else answers 404. One that need not be
	// told always does.
	AbsoluteURLs bool
	// UseRemoteAddress: the peer's address is the client's (edge proxies).
	UseRemoteAddress bool
	Tracing          bool
	AccessLog        string // path, "" for none
}

// TCPListener forwards connections.
type TCPListener struct {
	// Protocol decides about filters before the proxying: "Mongo" is
	// sniffed for statistics, all else is plain.
	Mongo bool
	// Routes: the first of which destination and server name fit. A connection
	// that fits none is closed.
	Routes    []TCPRoute
	AccessLog string
}

// TCPRoute sends connections to clusters.
type TCPRoute struct {
	// Destinations are CIDR blocks; none means any destination, on a
	// listener with an open IP the proxy's own address.
	Destinations []string
	// Port that connections were going to; 0 is any. Routes with a port stand
	// before those without.
	Port int
	// ServerNames are those that clients ask for when they begin TLS: names, and
	// wildcards such as *.example.com for all that end so. None means any client,
	// also one that asks for no name or speaks no TLS.
	ServerNames []string
	// Assumed: a proxy that sees no server names may take connections to ask for
	// these. Else it must close what might be for them.
	Assumed bool
	// Clusters share the connections by their weights, whose sum is above 0;
	// nothing else is said of them.
	Clusters []WeightedCluster
	Stream   Stream
	// HashSource picks an endpoint of a cluster with a Hash by the caller's address.
	HashSource bool
	// Origins are those of the listener where there are none.
	Origins []diag.Ref
}

// Whole is all connections, or requests, for one cluster.
func Whole(cluster string) []WeightedCluster {
	return []WeightedCluster{{Name: cluster, Weight: WholeWeight}}
}

// ParseDestination reads a CIDR block, with the bits beyond it cleared.
func ParseDestination(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("destination must be a CIDR block like 10.0.0.0/8, found %q", text)
	}
	return p.Masked(), nil
}

// ServerTLS terminates TLS, with files on the proxy's machine or a Secret.
type ServerTLS struct {
	CertificateFile, KeyFile string
	// SecretName, in place of the files, is the name of one with a certificate.
	SecretName string `json:",omitempty"`
	// Others are further certificates, for keys of other types.
	Others []KeyPair
	// Client says whether clients show a certificate, and what is asked of it.
	// Nil is no certificate.
	Client *ClientCertificate
	// MinVersion and MaxVersion of TLS that are spoken; "" is the proxy's own
	// choice, which is 1.2 and 1.3.
	MinVersion, MaxVersion TLSVersion
	// Ciphers of TLS 1.2 and before, in OpenSSL's names; none is the proxy's own
	// choice.
	Ciphers []string
	ALPN    []string
}

// KeyPair is a certificate and its key, in files or a Secret.
type KeyPair struct {
	CertificateFile, KeyFile string
	SecretName               string `json:",omitempty"`
}

// TLSVersion is a version of TLS, such as "1.2".
type TLSVersion string

// The versions of TLS.
const (
	TLS10 TLSVersion = "1.0"
	TLS11 TLSVersion = "1.1"
	TLS12 TLSVersion = "1.2"
	TLS13 TLSVersion = "1.3"
)

// ClientCertificate is what a server asks of the certificates of its clients.
type ClientCertificate struct {
	// CAFile holds the authorities that vouch for them; or CASecretName does, under its
	// name.
	CAFile       string
	CASecretName string `json:",omitempty"`
	// Optional: a client may also show none. One that it shows must be right.
	Optional bool
	// Unverified: no authority need vouch for it. What else is asked holds.
	Unverified bool
	// CRLFile holds revoked certificates of the authorities; "" for none.
	CRLFile string
	// SubjectAltNames are the names of which it must have one; none means any.
	SubjectAltNames []string
	// KeyHashes are SHA-256 of public keys in base64, CertificateHashes those of
	// certificates in hex. With any of either, one must be the client's.
	KeyHashes, CertificateHashes []string
}

// RouteTable is what an HTTP listener decides by.
type RouteTable struct {
	Name         string
	VirtualHosts []*VirtualHost // sorted by name
	// IgnorePort: a Host header is known by its name, whatever port it says.
	// A back-end that cannot say so knows only the domains as they stand.
	IgnorePort bool
}

// Closed is the table in place of one that cannot be as written: it answers 503
// to every request.
func (t *RouteTable) Closed() *RouteTable {
	return &RouteTable{Name: t.Name, VirtualHosts: []*VirtualHost{{
		Name: "closed", Domains: []string{"*"}, Routes: []*Route{(&Route{}).Closed(Match{})},
	}}}
}

// VirtualHost holds the routes of one host. Domains are in a fixed order and
// unique within the table.
type VirtualHost struct {
	Name    string
	Domains []string
	Routes  []*Route // the first match wins
}

// Closed is the virtual host in place of one that cannot be as written: it
// answers 503 to every request.
func (h *VirtualHost) Closed() *VirtualHost {
	return &VirtualHost{Name: h.Name, Domains: h.Domains, Routes: []*Route{(&Route{Origins: h.origins()}).Closed(Match{})}}
}

// Route is one decision. Exactly one of Redirect, Response and Clusters is set.
type Route struct {
	// Operation names the route in traces: the rule's name, or
	// "default-route". "" for none.
	Operation string
	// Name tells the route from others in access logs; "" for none.
	Name string
	// StatPrefix: the proxy keeps statistics of the route under this name; ""
	// for none.
	StatPrefix string
	Match      Match

	Redirect *Redirect
	Response *DirectResponse
	Clusters []WeightedCluster
	// Hash is what clusters with a Hash pick endpoints by; of several keys by all
	// of them together.
	Hash []HashKey

	Rewrite *Rewrite
	// Timeout of the whole request, retries included; 0 means none.
	Timeout time.Duration
	Retry   *Retry
	Fault   *Fault
	Mirrors []Mirror
	CORS    *CORS
	// RequestHeaders change what the upstream gets, ResponseHeaders what the
	// caller gets.
	RequestHeaders, ResponseHeaders HeaderOperations
	WebSocket                       Upgrade

	// Optional: the route only names requests and allows upgrades, and those
	// that it does not take go to the same place. A back-end that cannot say
	// such a route leaves it out. Any other is closed: what can be said of its
	// match is answered with Unavailable.
	Optional bool

	Origins []diag.Ref
}

// Upgrade says whether a connection may become another protocol's.
type Upgrade string

const (
	// UpgradeByDefault leaves it to the proxy, as before routes could say.
	UpgradeByDefault Upgrade = ""
	UpgradeAllowed   Upgrade = "allowed"
	UpgradeRefused   Upgrade = "refused"
)

// Closed is the route in place of one that cannot act as written: it takes the
// requests of the match and answers 503, so that no later route gets them.
func (r *Route) Closed(m Match) *Route {
	return &Route{Operation: r.Operation, Name: r.Name, Match: m, Response: Unavailable(), Origins: r.Origins}
}

// Match is what a request must be; the zero Match takes every request. At most
// one of Path, Prefix and Regex is set; none means the prefix "/".
type Match struct {
	Path, Prefix, Regex string
	// IgnoreCase compares Path and Prefix without regard to case.
	IgnoreCase bool
	Headers    []HeaderMatch // all must hold; order is fixed
	Query      []QueryMatch  // all must hold; order is fixed
}

// CatchAll reports whether every request matches.
func (m Match) CatchAll() bool {
	return m.AnyPath() && len(m.Headers) == 0 && len(m.Query) == 0
}

// AnyPath reports whether the path does not matter.
func (m Match) AnyPath() bool {
	return m.Path == "" && m.Regex == "" && (m.Prefix == "" || m.Prefix == "/")
}

// HeaderMatch is a condition on one header or pseudo-header (":authority").
// With all of Exact, Prefix and Regex empty the value must be empty, unless
// Present is set: then any value does. Regex takes the whole value.
type HeaderMatch struct {
	Name                 string
	Exact, Prefix, Regex string
	Present              bool
	// Not: the condition must not hold, as it does not where there is no such
	// header. One that the empty value fulfils cannot be asked in this way.
	Not bool
}

// QueryMatch is a condition on one parameter of the query string, which must
// be there. With Exact and Regex empty the value must be empty, unless Present
// is set: then any value does. Regex takes the whole value.
type QueryMatch struct {
	Name         string
	Exact, Regex string
	Present      bool
}

// WholeWeight is, by habit, the weight of a cluster that gets all requests.
const WholeWeight = 100

// WeightedCluster gets as many of the requests as its Weight is of the sum of
// the route's, which is above 0.
type WeightedCluster struct {
	Name   string
	Weight int
	// Host takes the place of the one that the request is for, and of the
	// route's own rewrite; "" for neither.
	Host string
	// Header operations of requests that go here, and of their responses,
	// beside those of the route.
	RequestHeaders, ResponseHeaders HeaderOperations
}

// ChangesHeaders reports whether the requests that go here are changed, or their
// responses.
func (c WeightedCluster) ChangesHeaders() bool {
	return c.Host != "" || !c.RequestHeaders.Empty() || !c.ResponseHeaders.Empty()
}

// Redirect answers with another URL instead of forwarding. Empty parts stay as
// requested; at most one of Path and Prefix is set.
type Redirect struct {
	Scheme, Host string
	Port         int
	Path         string // the whole path
	// StripQuery leaves out the query, beside a Path.
	StripQuery bool
	Prefix     string // in place of the matched prefix
	Code       int    // 0 is 301
}

// DirectResponse answers instead of forwarding.
type DirectResponse struct {
	Status int
	Body   string // bytes, of any encoding
}

// Unavailable is the answer of what is closed.
func Unavailable() *DirectResponse { return &DirectResponse{Status: http.StatusServiceUnavailable} }

// Rewrite changes the request before forwarding. Path replaces the matched
// prefix or path; Regex changes the parts of the path that it finds. Empty parts
// stay; at most one of Path and Regex is set.
type Rewrite struct {
	Host, Path string
	Regex      *RegexRewrite
}

// RegexRewrite replaces what Match finds in the path; \\1 in Substitution is its
// first group.
type RegexRewrite struct{ Match, Substitution string }

// Retry repeats failed requests.
type Retry struct {
	// On are Envoy's conditions, joined by commas; "" is 5xx, a connection
	// failure and a refused stream.
	On string
	// StatusCodes are answers that are tried again whatever On says.
	StatusCodes   []int
	Attempts      int
	PerTryTimeout time.Duration
	// BackOff is what the pauses between tries grow from; 0 is the proxy's own,
	// 25 ms.
	BackOff time.Duration
	// OtherHosts prefers those that were not tried. It is a wish: a back-end that
	// cannot say so tries any.
	OtherHosts OtherHosts
	// OtherLocalities goes on to endpoints of lower priority.
	OtherLocalities bool
	// ByDefault: nobody asked for it. A back-end of proxies that never tried again
	// by themselves leaves it out.
	ByDefault bool
}

// OtherHosts says whether a retry goes to another endpoint than the tries before.
type OtherHosts string

const (
	AnyHost OtherHosts = ""
	// Untried is one that was not tried yet, if there is one.
	Untried OtherHosts = "untried"
	// UntriedUnlessHashed is Untried where the route has no Hash: what a request
	// says picks the endpoint, at each try.
	UntriedUnlessHashed OtherHosts = "untried-unless-hashed"
)

// Million is every request, where a share of them is said in millionths.
const Million = 1_000_000

// Mirror is a cluster that gets copies of requests, whose answers nobody waits
// for. PerMillion is how many are copied, above 0.
type Mirror struct {
	Cluster    string
	PerMillion int
}

// Fault injects trouble. Each request draws for the delay and for the abort
// independently; PerMillion are 0..Million.
type Fault struct {
	Delay           time.Duration
	DelayPerMillion int
	// AbortStatus is of HTTP, AbortGRPC of gRPC; at most one is set.
	AbortStatus     int
	AbortGRPC       *int
	AbortPerMillion int
}

// Delays reports whether some requests wait.
func (f *Fault) Delays() bool { return f.Delay > 0 && f.DelayPerMillion > 0 }

// Aborts reports whether some requests are answered with AbortStatus or AbortGRPC.
func (f *Fault) Aborts() bool { return f.AbortPerMillion > 0 }

// CORS policy of a route. MaxAge of 0 means unset.
type CORS struct {
	// AllowOrigins: an origin that one of them takes may call.
	AllowOrigins                              []OriginMatch
	AllowMethods, AllowHeaders, ExposeHeaders []string
	MaxAge                                    time.Duration
	AllowCredentials                          *bool
	// AnswerPreflights of other origins, without allowing anything, instead of
	// forwarding them.
	AnswerPreflights bool
}

// OriginMatch takes origins of browsers in one way. An Exact of "*" takes all;
// Regex takes the whole origin.
type OriginMatch struct{ Exact, Prefix, Regex string }

// HeaderOperations change headers: Append puts a value beside those that are
// there, Set in place of them. All three are sorted by name.
type HeaderOperations struct {
	Append, Set []Header
	Remove      []string
}

// Empty reports whether no header is changed.
func (o HeaderOperations) Empty() bool {
	return len(o.Append) == 0 && len(o.Set) == 0 && len(o.Remove) == 0
}

// Header is a value that is written as it stands, or with what the proxy knows of
// the request.
type Header struct {
	Name, Value string
	// Format: Value is in the format of package headerformat.
	Format bool
}

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
