package ir

import (
	"net/http"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// RouteTable is what an HTTP listener decides by. Host names have no final dot:
// a Host header of example.com. means example.com, for domains, for conditions
// on :authority and for the upstream. A back-end whose proxies keep the dot
// writes a second domain with it.
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
	// DotKept: where a proxy does not drop the final dot of a host, a host with
	// the dot is another host. Pilot had it so.
	DotKept bool
	// Port is that of the listener, of a host for what no other is for; 0 where it
	// does not matter. A back-end that cannot ignore the port of a Host header sends
	// nothing on that names another port: it may be for a host of the table.
	Port int
}

// Closed is the virtual host in place of one that cannot be as written: it
// answers 503 to every request.
func (h *VirtualHost) Closed() *VirtualHost {
	return &VirtualHost{Name: h.Name, Domains: h.Domains, DotKept: h.DotKept, Routes: []*Route{(&Route{Origins: h.origins()}).Closed(Match{})}}
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
