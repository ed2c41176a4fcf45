// Package explain says what becomes of a request by the configuration of one
// proxy, in the words of who wrote its rules: which listener takes it, which
// virtual host and route, which routes before did not and why, and what happens
// then. It reads the IR alone, so that the answer is the same wherever the
// configuration was compiled.
//
//	request.go    a request, and the way on which it comes to the proxy
//	listener.go   the listener that takes its connection, the chain, the TCP route
//	path.go       the path as routes are held against it
//	host.go       the virtual host of an authority
//	condition.go  conditions of a route, and the one that fails
//	forward.go    what a route does to a request
//	words.go      all that in words
//	text.go       an Explanation for people
//	summary.go    a whole configuration in tables
//	types.go      the types of resources that one may ask for
//
// That a real proxy does the same is held by package internal/evaluator, which
// reads what Envoys are told.
package explain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Proxy is a configuration as one proxy has it. It is only read.
type Proxy struct {
	Config *ir.Config
	// IP is the proxy's own address.
	IP string
	// Members are the endpoints that a key of a cluster means now; nil for
	// nobody knows.
	Members func(key string) []ir.Endpoint
	// Resolve gives the addresses that a host has for the workload; nil for nobody
	// knows.
	Resolve func(host string) []string
}

// Explanation is what becomes of a request.
type Explanation struct {
	// Request is the one that was asked about, without what may be a secret.
	Request Request `json:"request"`
	// Listener is nil when nothing takes the connection.
	Listener *Listener `json:"listener,omitempty"`
	// VirtualHost, and the domain of it that fitted; "" for what is no HTTP.
	VirtualHost string `json:"virtualHost,omitempty"`
	Domain      string `json:"domain,omitempty"`
	// Passed are the routes before, in order, that did not take the request.
	Passed []Passed `json:"passed,omitempty"`
	Route  *Route   `json:"route,omitempty"`
	// Answer is the proxy's own; nil when it forwards, or closes the connection.
	Answer *Answer `json:"answer,omitempty"`
	// Forward is what goes on to clusters; nil when nothing does.
	Forward *Forward `json:"forward,omitempty"`
	// Reason says why it ends where it ends: "" where a route was taken.
	Reason string `json:"reason,omitempty"`
}

// Listener is the one that takes a connection.
type Listener struct {
	Address   string     `json:"address"`
	Direction string     `json:"direction"`
	Origins   []diag.Ref `json:"origins,omitempty"`
}

// Passed is a route that did not take the request.
type Passed struct {
	Name    string     `json:"name,omitempty"`
	Match   string     `json:"match"`
	Origins []diag.Ref `json:"origins,omitempty"`
	// Failed is the first condition that does not hold, and what was found.
	Failed string `json:"failed"`
}

// Route is the one that took it: the Number-th of so many of its virtual host, or
// of its listener.
type Route struct {
	Number  int        `json:"number"`
	Of      int        `json:"of"`
	Name    string     `json:"name,omitempty"`
	Match   string     `json:"match"`
	Origins []diag.Ref `json:"origins,omitempty"`
}

// Answer is what the proxy says itself.
type Answer struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
	Body     string `json:"body,omitempty"`
}

// Ask says what becomes of a request of the proxy's workload or, at the edge, of
// one of its clients, on the way that it takes.
func (p Proxy) Ask(r Request) *Explanation { return p.Explain(p.enter(r)) }

// Explain says what the proxy does with a request that comes on the way that it
// names.
func (p Proxy) Explain(r Request) *Explanation {
	e := &Explanation{Request: r.shown()}
	l := p.listener(r, e)
	if l == nil {
		return e
	}
	e.Listener = &Listener{Address: l.Address(), Direction: string(l.Direction), Origins: l.Origins}
	taken := &ir.FilterChain{HTTP: l.HTTP, TCP: l.TCP, TLS: l.TLS, Origins: l.Origins}
	if len(l.Chains) > 0 {
		if taken = chooseChain(l.Chains, r); taken == nil {
			e.Reason = "the connection is closed: no filter chain is for " + serverName(r)
			return e
		}
	}
	switch begins := r.Scheme == "https"; {
	case taken.TLS != nil && !begins:
		e.Reason = "the connection is closed: the listener speaks TLS, and this is plain " + r.Scheme
	case taken.HTTP != nil && taken.TLS == nil && begins:
		e.Reason = "the connection is closed: the listener speaks plain HTTP, and the caller begins TLS"
	case taken.HTTP != nil:
		p.http(taken.HTTP, r, e)
	case taken.TCP != nil:
		p.tcp(taken.TCP, taken.Origins, r, e)
	default:
		e.Reason = "the connection is closed: no listener is for " + destination(r)
	}
	return e
}

// http goes by a table.
func (p Proxy) http(h *ir.HTTPListener, r Request, e *Explanation) {
	if !strings.HasPrefix(r.Path, "/") {
		e.notFound("the path must begin with a slash")
		return
	}
	path, ok := normalized(r.Path)
	if !ok {
		e.Answer, e.Reason = &Answer{Status: http.StatusBadRequest}, "no path may have a %00"
		return
	}
	r.Path, r.Host = path, ir.WithoutFinalDot(r.Host)
	if h.StrictHosts && !oneHost.MatchString(r.Host) {
		e.Answer = &Answer{Status: http.StatusForbidden, Body: "RBAC: access denied"}
		e.Reason = fmt.Sprintf("the Host header %q is no host name or address in its usual form", r.Host)
		return
	}
	host, domain := chooseHost(p.table(h), r.Host)
	if host == nil {
		e.notFound("no virtual host has a domain for " + r.Host)
		return
	}
	e.VirtualHost, e.Domain = host.Name, domain
	for i, route := range host.Routes {
		failed := fails(route.Match, r)
		if failed != "" {
			e.Passed = append(e.Passed, Passed{Name: route.Name, Match: matchText(route.Match), Origins: route.Origins, Failed: failed})
			continue
		}
		e.Route = &Route{Number: i + 1, Of: len(host.Routes), Name: route.Name, Match: matchText(route.Match), Origins: route.Origins}
		p.take(route, r, e)
		return
	}
	e.notFound(fmt.Sprintf("none of the %d routes of the virtual host takes it", len(host.Routes)))
}

func (e *Explanation) notFound(reason string) {
	e.Answer, e.Reason = &Answer{Status: http.StatusNotFound}, reason
}

// table is the one that a listener goes by; one that is not there is empty.
func (p Proxy) table(h *ir.HTTPListener) *ir.RouteTable {
	if h.Inline != nil {
		return h.Inline
	}
	for _, t := range p.Config.RouteTables {
		if t.Name == h.Table {
			return t
		}
	}
	return &ir.RouteTable{Name: h.Table}
}
