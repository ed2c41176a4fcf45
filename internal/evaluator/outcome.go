package evaluator

import "time"

// Outcome is the effect of a proxy on a request. Outcomes with the same behaviour compare
// equal with cmp.Equal.
type Outcome struct {
	Listener string // "" if nothing accepts the connection
	// TCP means that the connection is forwarded as it is.
	TCP         bool
	VirtualHost string
	Operation   string // of the trace

	// Status is the status of the proxy's own answer, 0 if it forwards the request.
	// Location belongs to a redirect, Body to another answer.
	Status   int
	Location string
	Body     string

	Shares []Share
	// Host and Path are what the upstream receives.
	Host, Path string
	Change     Headers
	Timeout    time.Duration // 0 is none
	Retry      *Retry
	Mirrors    []Mirror
	HashHeader string // the header that selects endpoints
	WebSocket  bool
	CORS       *CORS
}

// Share is the part of the requests that one cluster gets.
type Share struct {
	Cluster string
	Percent float64
	// Faults are drawn one after another.
	Faults []Fault
	// Host, if set, is what the upstream receives instead of the Outcome's.
	Host   string
	Change Headers // besides that of the route
}

// onePercent is one percent of the requests, in millionths.
const (
	onePercent  = 10_000
	allRequests = 100 * onePercent
)

// Mirror is where copies of requests go, and how many.
type Mirror struct {
	Cluster    string
	PerMillion int
}

// Fault delays, then aborts. The two are drawn independently.
type Fault struct {
	Delay           time.Duration
	DelayPerMillion int
	AbortStatus     int
	AbortGRPC       int // 0 for none
	AbortPerMillion int
}

// idle reports whether the fault never occurs.
func (f Fault) idle() bool { return f.DelayPerMillion == 0 && f.AbortPerMillion == 0 }

// Headers are changes to the request and to its response.
type Headers struct {
	Add, Set       []Header
	Remove         []string
	ResponseAdd    []Header
	ResponseSet    []Header
	ResponseRemove []string
}

// Header is a header's value as received, or the text of a Format.
type Header struct {
	Name, Value string
	Format      bool
}

// Retry is the retry policy for failed requests.
type Retry struct {
	On            string
	StatusCodes   []uint32
	Attempts      int
	PerTryTimeout time.Duration // 0 is none
	BackOff       time.Duration // 0 is Envoy's default
	// OtherHosts and OtherPriorities prefer those that were not tried.
	OtherHosts, OtherPriorities bool
}

// CORS is a CORS policy. Its lists are joined with commas, as in the answers' headers.
type CORS struct {
	Origins, OriginsBeginning, OriginsMatching   []string
	Methods, AllowHeaders, ExposeHeaders, MaxAge string
	Credentials                                  bool
	// Keep means that preflights of other origins are not forwarded.
	Keep bool
}
