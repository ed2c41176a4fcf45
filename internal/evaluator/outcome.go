package evaluator

import "time"

// Outcome is what becomes of a request. Outcomes that behave alike compare
// equal with cmp.Equal.
type Outcome struct {
	Listener string // "" when nothing takes the connection
	// TCP: the connection goes on as it is.
	TCP         bool
	VirtualHost string
	Operation   string // of the trace

	// Status that the proxy answers itself; 0 when it forwards. Location goes
	// with a redirect, Body with another answer.
	Status   int
	Location string
	Body     string

	Shares []Share
	// Host and Path are what the upstream gets.
	Host, Path string
	Change     Headers
	Timeout    time.Duration // 0 is none
	Retry      *Retry
	Mirrors    []Mirror
	HashHeader string // that endpoints are picked by
	WebSocket  bool
	CORS       *CORS
}

// Share of the requests goes to one cluster.
type Share struct {
	Cluster string
	Percent float64
	// Faults are drawn for one after another.
	Faults []Fault
	// Host is what the upstream gets in place of the Outcome's, if set.
	Host   string
	Change Headers // beside that of the route
}

// onePercent of the requests, in millionths.
const (
	onePercent  = 10_000
	allRequests = 100 * onePercent
)

// Mirror is where copies of requests go, and how many.
type Mirror struct {
	Cluster    string
	PerMillion int
}

// Fault delays, then aborts; the two are drawn for independently.
type Fault struct {
	Delay           time.Duration
	DelayPerMillion int
	AbortStatus     int
	AbortGRPC       int // 0 for none
	AbortPerMillion int
}

// idle reports whether nothing ever happens.
func (f Fault) idle() bool { return f.DelayPerMillion == 0 && f.AbortPerMillion == 0 }

// Headers are changes: of the request, and of its response.
type Headers struct {
	Add, Set       []Header
	Remove         []string
	ResponseAdd    []Header
	ResponseSet    []Header
	ResponseRemove []string
}

// Header is a value for a header, as it arrives; of a Format, as it is written.
type Header struct {
	Name, Value string
	Format      bool
}

// Retry of a failed request.
type Retry struct {
	On            string
	StatusCodes   []uint32
	Attempts      int
	PerTryTimeout time.Duration // 0 is none
	BackOff       time.Duration // 0 is Envoy's own
	// OtherHosts and OtherPriorities are those that were not tried.
	OtherHosts, OtherPriorities bool
}

// CORS policy; the lists joined with commas as in the answers' headers.
type CORS struct {
	Origins, OriginsBeginning, OriginsMatching   []string
	Methods, AllowHeaders, ExposeHeaders, MaxAge string
	Credentials                                  bool
	// Keep: preflights of other origins are not forwarded.
	Keep bool
}
