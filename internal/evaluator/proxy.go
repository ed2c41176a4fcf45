package evaluator

import (
	"net/netip"
	"regexp"
	"time"
)

// Proxy is the whole configuration of an Envoy, in no dialect, with defaults filled in.
type Proxy struct {
	Listeners []*Listener
	Clusters  map[string]*Cluster
}

// Listener accepts connections. It has HTTP or Chains. With neither, it closes
// connections that it does not hand off.
type Listener struct {
	Traits
	HTTP   *HTTP
	Chains []Chain // the first match wins
	// Nearest means that only the chains for the most specific destination are tried.
	Nearest bool
}

// Traits are properties of a listener that do not depend on its traffic. They are
// comparable with ==.
type Traits struct {
	Name    string
	Address netip.AddrPort
	// Bind opens the port. UseOriginalDst hands each captured connection to the
	// listener of its destination.
	Bind, UseOriginalDst bool
	// CertificateFile and KeyFile terminate TLS. ClientCAFile verifies clients. ALPN and
	// ClientNames are joined with commas, Ciphers with colons.
	CertificateFile, KeyFile, ClientCAFile, ALPN, Ciphers, ClientNames string
	// ClientOptional means that a client may present no certificate.
	ClientOptional bool
	// OtherTLS is the rest of what v3 can require of clients, as text.
	OtherTLS  string
	AccessLog string
	// Tracing is the operation, "ingress" or "egress", "" for none.
	Tracing          string
	UseRemoteAddress bool
	Mongo            bool
	// Idle is how long a quiet stream or connection lives, Age how long any
	// connection lives. 0 is no limit.
	Idle, Age time.Duration
}

// Chain sends connections to clusters by their weights. The zero Prefix matches any
// destination, Port 0 any port, and an empty name any client.
type Chain struct {
	Destination netip.Prefix
	Port        int
	Name        string // as a client asks for it; may begin with "*."
	Shares      []Share
	// HTTP replaces Shares.
	HTTP *HTTP
	// Traits are those of the connections, if chains have TLS of their own.
	Traits Traits
}

// HTTP decides about requests.
type HTTP struct {
	VirtualHosts []*VirtualHost
	AbsoluteURLs bool
	// StripDot removes the final dot of a request's host before anything else.
	StripDot bool
	// Hosts must match the whole Host header, or the answer is 403. Nil accepts
	// any host.
	Hosts *regexp.Regexp
	// IgnorePort means that the port of the Host header does not select virtual hosts.
	IgnorePort bool
	// WebSockets means that connections may be upgraded, unless a route says otherwise.
	WebSockets bool
	// CORS and RouteFaults mean that the filters exist and act on the routes' settings.
	CORS, RouteFaults bool
	// Faults act on their own. Each of them is drawn independently.
	Faults []FaultFilter
}

// FaultFilter acts on matching requests.
type FaultFilter struct {
	Cluster string
	Headers []HeaderMatch
	Fault   Fault
}

// VirtualHost has the routes of its domains, which are in lower case.
type VirtualHost struct {
	Name    string
	Domains []string
	Routes  []*Route
}

// Route redirects, answers or forwards.
type Route struct {
	Operation string
	Path      PathMatch
	Headers   []HeaderMatch
	Query     []QueryMatch

	Redirect *Redirect
	Response *Response
	Weights  []Weight

	PrefixRewrite, HostRewrite string
	RegexRewrite               *regexp.Regexp
	Substitution               string
	Timeout                    time.Duration
	Retry                      *Retry
	Mirrors                    []Mirror
	// HashHeader is the first header that selects endpoints.
	HashHeader string
	WebSocket  *bool // nil: as the listener does
	Change     Headers
	Fault      *Fault
	CORS       *CORS
}

// Weight is a share before it is divided by the sum.
type Weight struct {
	Cluster string
	Weight  int
	Host    string // in place of the request's; "" keeps that of the route
	Change  Headers
}

// Redirect changes the URL.
type Redirect struct {
	Scheme, Host string
	Port         int
	Path, Prefix string
	KeepQuery    bool // together with Path; without one the query always stays
	Code         int
}

// Response is an answer of the proxy itself.
type Response struct {
	Status int
	Body   string
}

// PathKind is how a PathMatch compares.
type PathKind int

// The ways to match a path.
const (
	Prefix PathKind = iota
	Exact
	Regex
)

// PathMatch is a condition on the path.
type PathMatch struct {
	Kind       PathKind
	Text       string
	Regex      *regexp.Regexp
	IgnoreCase bool // not for Regex
	SeesQuery  bool // only for Prefix
}

// ValueMatch is a condition on an existing value.
type ValueMatch struct {
	Any    bool
	Exact  string
	Prefix string
	Regex  *regexp.Regexp
}

// HeaderMatch is a condition on a header.
type HeaderMatch struct {
	Name string
	ValueMatch
	// Not inverts the result for the value. An absent header never matches, unless
	// MissingAsEmpty gives it an empty value.
	Not, MissingAsEmpty bool
}

// QueryMatch is a condition on a query parameter.
type QueryMatch struct {
	Name string
	ValueMatch
}

// Cluster is a set of endpoints and the way to reach them. Two clusters with the same
// behaviour compare equal.
type Cluster struct {
	Name      string
	Discovery Discovery
	Port      int        // in place of that of Original; 0 keeps it
	Endpoints []Endpoint // as discovered, sorted
	Balancer  string     // its name in v1
	Ring      int        // the least size of a ring_hash, 0 for Envoy's default

	ConnectTimeout           time.Duration
	HTTP2                    bool
	MaxRequestsPerConnection int
	TLS                      *TLS
	Limits                   Limits
	Outlier                  *Outlier
	Health                   *Health
	// MaxStreams is the number of concurrent requests on an HTTP/2 connection. 0 is
	// Envoy's default.
	MaxStreams int
	// Beyond lists the v3 fields that are set and that v1 cannot express.
	Beyond []string
}

// Discovery is how a cluster gets its endpoints.
type Discovery string

// The ways of discovery. A cluster without endpoints is Fixed, whatever way it uses.
const (
	Fixed Discovery = "fixed" // as configured
	DNS   Discovery = "dns"   // IPv4 addresses of names
	// FirstOfDNS is the first address of one name.
	FirstOfDNS Discovery = "first of dns"
	Original   Discovery = "original" // the original destination of the connection
)

// Endpoint is a member of a cluster.
type Endpoint struct {
	Address string // host:port
	Zone    string
	Weight  int
	// Priority is 0 for those that are used first. Share is the weight of the
	// locality, 0 if localities have none.
	Priority, Share int
}

// TLS configures connections to the endpoints.
type TLS struct {
	CertificateFile, KeyFile, CAFile, SNI string
	SubjectAltNames                       []string
	CRLFile                               string
	// AutoSNI and AutoSAN ask for, and verify, the host of the request.
	AutoSNI, AutoSAN bool
}

// Limits are the limits of a cluster in the default priority.
type Limits struct {
	Connections, PendingRequests, Requests, Retries int
}

// Health checks endpoints by a path or by a connection.
type Health struct {
	Path               string
	Interval, Timeout  time.Duration
	Unhealthy, Healthy int
}

// Outlier ejects failing endpoints.
type Outlier struct {
	// The number of consecutive errors that eject an endpoint; 0 is never.
	Consecutive5xx, ConsecutiveGateway int
	Interval, BaseEjection             time.Duration
	MaxPercent                         int
	// Panic is the percentage of healthy endpoints below which all are used.
	Panic int
	// SuccessRate ejects endpoints with a lower success rate than the others.
	SuccessRate bool
	// Unbounded means that ejections may grow without limit and that one endpoint may
	// always be ejected.
	Unbounded bool
}
