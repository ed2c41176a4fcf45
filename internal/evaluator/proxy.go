package evaluator

import (
	"net/netip"
	"regexp"
	"time"
)

// Proxy is all that an Envoy was told, in no dialect. Defaults are filled in.
type Proxy struct {
	Listeners []*Listener
	Clusters  map[string]*Cluster
}

// Listener takes connections. It has HTTP or Chains, or neither: then it closes
// what it does not hand off.
type Listener struct {
	Traits
	HTTP   *HTTP
	Chains []Chain // the first that fits
	// Nearest: only the chains for the most specific destination are looked at.
	Nearest bool
}

// Traits are what a listener is, whatever comes in. They compare with ==.
type Traits struct {
	Name    string
	Address netip.AddrPort
	// Bind opens the port. UseOriginalDst gives each captured connection to the
	// listener of its destination.
	Bind, UseOriginalDst bool
	// CertificateFile and KeyFile terminate TLS, ClientCAFile verifies those
	// who call; ALPN is joined with commas, Ciphers with colons, ClientNames with
	// commas.
	CertificateFile, KeyFile, ClientCAFile, ALPN, Ciphers, ClientNames string
	// ClientOptional: a client may also show no certificate.
	ClientOptional bool
	// OtherTLS is the rest of what v3 can ask of clients, as text.
	OtherTLS  string
	AccessLog string
	// Tracing is the operation, "ingress" or "egress", "" for none.
	Tracing          string
	UseRemoteAddress bool
	Mongo            bool
	// Idle is how long a quiet stream or connection lives, Age how long any
	// connection; 0 is for ever.
	Idle, Age time.Duration
}

// Chain sends connections to clusters by their weights; the zero Prefix is any
// destination, Port 0 any port, no name any client.
type Chain struct {
	Destination netip.Prefix
	Port        int
	Name        string // as a client asks for it, perhaps with a leading "*."
	Shares      []Share
	// HTTP takes the place of Shares.
	HTTP *HTTP
	// Traits are those of the connections, where chains have TLS of their own.
	Traits Traits
}

// HTTP decides about requests.
type HTTP struct {
	VirtualHosts []*VirtualHost
	AbsoluteURLs bool
	// StripDot takes the final dot off the host of a request before anything
	// looks at it.
	StripDot bool
	// Hosts is what the Host header must fit whole, or the answer is 403; nil for
	// anything.
	Hosts *regexp.Regexp
	// IgnorePort: virtual hosts are chosen by the name of a Host header alone.
	IgnorePort bool
	// WebSockets: connections are upgraded where routes do not say.
	WebSockets bool
	// CORS and RouteFaults: the filters are there, and act on what routes say.
	CORS, RouteFaults bool
	// Faults act by themselves, each drawing for its own.
	Faults []FaultFilter
}

// FaultFilter acts on requests that fit.
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
	// HashHeader is the first header that endpoints are picked by.
	HashHeader string
	WebSocket  *bool // nil: as the listener does
	Change     Headers
	Fault      *Fault
	CORS       *CORS
}

// Weight is a share before it is set against the sum.
type Weight struct {
	Cluster string
	Weight  int
	Host    string // in place of the request's; "" leaves that of the route
	Change  Headers
}

// Redirect changes the URL.
type Redirect struct {
	Scheme, Host string
	Port         int
	Path, Prefix string
	KeepQuery    bool // beside a Path; without one the query always stays
	Code         int
}

// Response is an answer of the proxy's own.
type Response struct {
	Status int
	Body   string
}

// PathKind is the way of a PathMatch.
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
	SeesQuery  bool // Prefix alone
}

// ValueMatch is a condition on a value that is there.
type ValueMatch struct {
	Any    bool
	Exact  string
	Prefix string
	Regex  *regexp.Regexp
}

// HeaderMatch wants a header, or wants it not to be so.
type HeaderMatch struct {
	Name string
	ValueMatch
	// Not inverts what the value comes to. A header that is not there never
	// fits, unless MissingAsEmpty: then its value is empty.
	Not, MissingAsEmpty bool
}

// QueryMatch wants a query parameter.
type QueryMatch struct {
	Name string
	ValueMatch
}

// Cluster is a set of endpoints and how they are reached. Two clusters that
// behave alike compare equal.
type Cluster struct {
	Name      string
	Discovery Discovery
	Port      int        // in place of the one of Original; 0 leaves it
	Endpoints []Endpoint // as discovered, sorted
	Balancer  string     // v1's name of it
	Ring      int        // the least size of a ring_hash, 0 for Envoy's default

	ConnectTimeout           time.Duration
	HTTP2                    bool
	MaxRequestsPerConnection int
	TLS                      *TLS
	Limits                   Limits
	Outlier                  *Outlier
	Health                   *Health
	// MaxStreams are the requests at a time on a connection of HTTP/2; 0 is
	// Envoy's default.
	MaxStreams int
	// Beyond is what v1 has no words for: the v3 fields that are set.
	Beyond []string
}

// Discovery is how a cluster gets its endpoints.
type Discovery string

// The ways of discovery. A cluster that has no endpoints, whatever way it asked
// for them, is Fixed.
const (
	Fixed Discovery = "fixed" // as told
	DNS   Discovery = "dns"   // IPv4 addresses of names
	// FirstOfDNS is the first address of one name.
	FirstOfDNS Discovery = "first of dns"
	Original   Discovery = "original" // where the connection was going
)

// Endpoint is a member of a cluster.
type Endpoint struct {
	Address string // host:port
	Zone    string
	Weight  int
	// Priority is 0 for those that are used first. Share is the weight of the
	// locality, 0 where localities have none.
	Priority, Share int
}

// TLS to the endpoints.
type TLS struct {
	CertificateFile, KeyFile, CAFile, SNI string
	SubjectAltNames                       []string
	CRLFile                               string
	// AutoSNI and AutoSAN: the host that a request names is asked for, and verified.
	AutoSNI, AutoSAN bool
}

// Limits of a cluster, in default priority.
type Limits struct {
	Connections, PendingRequests, Requests, Retries int
}

// Health asks endpoints whether they are alive, by a path or for a connection.
type Health struct {
	Path               string
	Interval, Timeout  time.Duration
	Unhealthy, Healthy int
}

// Outlier ejects endpoints that fail.
type Outlier struct {
	// How many errors in a row eject an endpoint; 0 is never.
	Consecutive5xx, ConsecutiveGateway int
	Interval, BaseEjection             time.Duration
	MaxPercent                         int
	// Panic is the percentage of healthy endpoints below which all are used.
	Panic int
	// SuccessRate: endpoints that answer worse than the others are ejected.
	SuccessRate bool
	// Unbounded: an ejection may grow for ever, and one endpoint may always
	// be ejected.
	Unbounded bool
}
