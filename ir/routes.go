package ir

import (
	"net/http"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// RouteTable is the table by which an HTTP listener routes. Host names have no
// final dot: a Host header of example.com. means example.com, for domains, for
// conditions on :authority and for the upstream. A back-end whose proxies keep the
// dot writes a second domain with it.
type RouteTable struct {
	Name         string
	VirtualHosts []*VirtualHost // sorted by name
	// IgnorePort ignores the port of a Host header. A back-end that cannot express
	// this knows the domains only as they stand.
	IgnorePort bool
	// OnDemand means that the proxy asks for each host that the table lacks, and that
	// the table then gets a virtual host for it.
	OnDemand bool `json:",omitempty"`
}

// Closed returns a table that replaces one that cannot be built as written. It
// answers 503 to every request.
func (t *RouteTable) Closed() *RouteTable {
	return &RouteTable{Name: t.Name, VirtualHosts: []*VirtualHost{{
		Name: "closed", Domains: []string{"*"}, Routes: []*Route{(&Route{}).Closed(Match{})},
	}}}
}

// VirtualHost holds the routes of one host. Domains are in a fixed order and unique
// within the table.
type VirtualHost struct {
	Name    string
	Domains []string
	Routes  []*Route // the first match wins
	// DotKept treats a host with a final dot as another host, on proxies that do
	// not drop the dot. Pilot did so.
	DotKept bool
	// Port is the port of the listener, set on the virtual host for hosts that no
	// other one is for; 0 if it does not matter. A back-end that cannot ignore the
	// port of a Host header forwards no request with another port: it may be for a
	// host of the table.
	Port int
}

// Closed returns a virtual host that replaces one that cannot be built as written.
// It answers 503 to every request.
func (h *VirtualHost) Closed() *VirtualHost {
	return &VirtualHost{Name: h.Name, Domains: h.Domains, DotKept: h.DotKept, Routes: []*Route{(&Route{Origins: h.origins()}).Closed(Match{})}}
}

// Route is one routing decision. Exactly one of Redirect, Response and Clusters is
// set.
type Route struct {
	// Operation names the route in traces: the rule's name, or "default-route". ""
	// for none.
	Operation string
	// Name identifies the route in access logs; "" for none.
	Name string
	// StatPrefix is the name under which the proxy keeps statistics of the route;
	// "" for none.
	StatPrefix string
	Match      Match

	Redirect *Redirect
	Response *DirectResponse
	Clusters []WeightedCluster
	// Hash holds the keys by which clusters with a Hash pick endpoints. Several
	// keys are combined.
	Hash []HashKey

	Rewrite *Rewrite
	// Timeout is for the whole request, retries included; 0 means none.
	Timeout time.Duration
	Retry   *Retry
	Fault   *Fault
	Mirrors []Mirror
	CORS    *CORS
	// RequestHeaders change the request for the upstream, ResponseHeaders the
	// response for the caller.
	RequestHeaders, ResponseHeaders HeaderOperations
	WebSocket                       Upgrade

	// Optional marks a route that only names requests and allows upgrades: without
	// it the same requests go to the same place. A back-end that cannot express
	// such a route leaves it out. It closes any other route: the expressible part
	// of its match is answered with Unavailable.
	Optional bool

	Origins []diag.Ref
}

// Upgrade says whether a connection may switch to another protocol.
type Upgrade string

const (
	// UpgradeByDefault leaves it to the proxy, as before routes had this setting.
	UpgradeByDefault Upgrade = ""
	UpgradeAllowed   Upgrade = "allowed"
	UpgradeRefused   Upgrade = "refused"
)

// Closed returns a route that replaces one that cannot be built as written. It
// takes the requests of the match and answers 503, so that no later route gets
// them.
func (r *Route) Closed(m Match) *Route {
	return &Route{Operation: r.Operation, Name: r.Name, Match: m, Response: Unavailable(), Origins: r.Origins}
}

// Match is a condition on requests. The zero Match takes every request. At most one
// of Path, Prefix and Regex is set; none means the prefix "/".
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

// AnyPath reports whether every path matches.
func (m Match) AnyPath() bool {
	return m.Path == "" && m.Regex == "" && (m.Prefix == "" || m.Prefix == "/")
}

// HeaderMatch is a condition on one header or pseudo-header (":authority"). If
// Exact, Prefix and Regex are all empty, the value must be empty, unless Present is
// set: then any value matches. Regex matches the whole value.
type HeaderMatch struct {
	Name                 string
	Exact, Prefix, Regex string
	Present              bool
	// Not inverts the condition. An absent header meets an inverted condition. A
	// condition that the empty value meets cannot be inverted.
	Not bool
}

// QueryMatch is a condition on one parameter of the query string, which must be
// present. If Exact and Regex are empty, the value must be empty, unless Present is
// set: then any value matches. Regex matches the whole value.
type QueryMatch struct {
	Name         string
	Exact, Regex string
	Present      bool
}

// WholeWeight is, by convention, the weight of a cluster that gets all requests.
const WholeWeight = 100

// WeightedCluster gets a share of the requests: its Weight divided by the sum of
// the route's weights, which is above 0.
type WeightedCluster struct {
	Name   string
	Weight int
	// Host replaces the host of the request and that of the route's own rewrite; ""
	// for neither.
	Host string
	// RequestHeaders and ResponseHeaders apply to requests that go here and to
	// their responses, in addition to those of the route.
	RequestHeaders, ResponseHeaders HeaderOperations
}

// ChangesHeaders reports whether the requests that go here, or their responses, are
// changed.
func (c WeightedCluster) ChangesHeaders() bool {
	return c.Host != "" || !c.RequestHeaders.Empty() || !c.ResponseHeaders.Empty()
}

// Redirect answers with another URL instead of forwarding. Empty parts stay as
// requested. At most one of Path and Prefix is set.
type Redirect struct {
	Scheme, Host string
	Port         int
	Path         string // the whole path
	// StripQuery leaves out the query, if Path is set.
	StripQuery bool
	Prefix     string // replaces the matched prefix
	Code       int    // 0 is 301
}

// DirectResponse answers instead of forwarding.
type DirectResponse struct {
	Status int
	Body   string // bytes, of any encoding
}

// Unavailable is the response of closed parts.
func Unavailable() *DirectResponse { return &DirectResponse{Status: http.StatusServiceUnavailable} }

// BadPath is the response to a path that would no longer be normal after the rewrite of a
// route.
func BadPath() *DirectResponse { return &DirectResponse{Status: http.StatusBadRequest} }

// Misdirected is the response that asks the client to repeat the request on a connection of
// its own.
func Misdirected() *DirectResponse { return &DirectResponse{Status: http.StatusMisdirectedRequest} }

// Rewrite changes the request before forwarding. Path replaces the matched prefix
// or path; Regex changes the parts of the path that it matches. Empty parts stay.
// At most one of Path and Regex is set.
type Rewrite struct {
	Host, Path string
	Regex      *RegexRewrite
}

// RegexRewrite replaces what Match finds in the path. \\1 in Substitution is its
// first group.
type RegexRewrite struct{ Match, Substitution string }

// Retry repeats failed requests.
type Retry struct {
	// On has Envoy's conditions, joined by commas; "" is 5xx, a connection failure and a
	// refused stream.
	On string
	// StatusCodes are response codes that are retried in addition to On.
	StatusCodes   []int
	Attempts      int
	PerTryTimeout time.Duration
	// BackOff is the base of the growing pauses between tries; 0 is the proxy's
	// default, 25 ms.
	BackOff time.Duration
	// OtherHosts prefers hosts that were not tried. It is a preference: a back-end
	// that cannot express it allows any host.
	OtherHosts OtherHosts
	// OtherLocalities moves on to endpoints of lower priority.
	OtherLocalities bool
	// ByDefault means that nobody configured it. A back-end whose proxies have
	// never retried by default leaves it out.
	ByDefault bool
}

// OtherHosts says whether a retry goes to an endpoint other than those tried
// before.
type OtherHosts string

const (
	AnyHost OtherHosts = ""
	// Untried picks a host that was not tried yet, if there is one.
	Untried OtherHosts = "untried"
	// UntriedUnlessHashed is Untried if the route has no Hash. With a Hash each try
	// picks the endpoint by the hash.
	UntriedUnlessHashed OtherHosts = "untried-unless-hashed"
)

// Million is the share of all requests, where shares are in millionths.
const Million = 1_000_000

// Mirror is a cluster that gets copies of requests. Its responses are ignored.
// PerMillion is how many are copied, above 0.
type Mirror struct {
	Cluster    string
	PerMillion int
}

// Fault injects failures. Each request draws for the delay and for the abort
// independently. The PerMillion fields are 0..Million.
type Fault struct {
	Delay           time.Duration
	DelayPerMillion int
	// AbortStatus is an HTTP code, AbortGRPC a gRPC status; at most one is set.
	AbortStatus     int
	AbortGRPC       *int
	AbortPerMillion int
}

// Delays reports whether some requests are delayed.
func (f *Fault) Delays() bool { return f.Delay > 0 && f.DelayPerMillion > 0 }

// Aborts reports whether some requests are answered with AbortStatus or AbortGRPC.
func (f *Fault) Aborts() bool { return f.AbortPerMillion > 0 }

// CORS is the CORS policy of a route. MaxAge of 0 means unset.
type CORS struct {
	// AllowOrigins allows origins that match one of them.
	AllowOrigins                              []OriginMatch
	AllowMethods, AllowHeaders, ExposeHeaders []string
	MaxAge                                    time.Duration
	AllowCredentials                          *bool
	// AnswerPreflights answers preflight requests of other origins, without
	// allowing anything, instead of forwarding them.
	AnswerPreflights bool
}

// OriginMatch matches the origin of a browser in one way. An Exact of "*" matches
// all; Regex matches the whole origin.
type OriginMatch struct{ Exact, Prefix, Regex string }

// HeaderOperations change headers: Append adds a value to existing ones, Set
// replaces them. All three fields are sorted by name.
type HeaderOperations struct {
	Append, Set []Header
	Remove      []string
}

// Empty reports whether no header is changed.
func (o HeaderOperations) Empty() bool {
	return len(o.Append) == 0 && len(o.Set) == 0 && len(o.Remove) == 0
}

// Header is a header with a literal value, or with a format that the proxy fills in
// from the request.
type Header struct {
	Name, Value string
	// Format means that Value is in the format of package headerformat.
	Format bool
}
