// Package explain describes how the configuration of one proxy handles a request,
// in the terms of the author of its rules: the listener that takes it, the virtual
// host and route, the routes before it that did not match and why, and what the
// route does. It reads only the IR, so that the answer is the same wherever the
// configuration was compiled.
//
//	request.go    a request, and the way on which it comes to the proxy
//	listener.go   the listener that takes its connection, the chain, the TCP route
//	path.go       the path as routes are matched against it
//	host.go       the virtual host of an authority
//	condition.go  conditions of a route, and the first that fails
//	token.go      tokens of a request, and those that a listener accepts
//	access.go     what policies about callers say of a request
//	caller.go     what is known about the sender of a request
//	call.go       what becomes of all calls of a caller
//	reach.go      who can call whom, as data and as tables
//	forward.go    what a route does to a request
//	words.go      texts for all of these
//	text.go       an Explanation for people
//	summary.go    a whole configuration in tables
//	types.go      the types of resources that a caller may ask for
//
// Package internal/evaluator tests that a real proxy does the same; it reads the
// configuration that Envoys receive.
package explain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Proxy is the configuration of one proxy. This package does not change it.
type Proxy struct {
	Config *ir.Config
	// IP is the proxy's own address.
	IP string
	// Members returns the current endpoints for a key of a cluster; nil if
	// endpoints are not known.
	Members func(key string) []ir.Endpoint
	// Resolve returns the addresses of a host as the workload resolves it; nil if
	// they are not known.
	Resolve func(host string) []string
}

// Explanation says how a request is handled.
type Explanation struct {
	// Request is the request in question, without possible secrets.
	Request Request `json:"request"`
	// Listener is nil if nothing takes the connection.
	Listener *Listener `json:"listener,omitempty"`
	// VirtualHost is the virtual host, and Domain its domain that matched; "" if
	// the traffic is not HTTP.
	VirtualHost string `json:"virtualHost,omitempty"`
	Domain      string `json:"domain,omitempty"`
	// Tokens are those that the listener accepts. TokenRequired is set if the request is refused and has no token, and
	// one with the right token may be taken.
	Tokens        []Token `json:"tokens,omitempty"`
	TokenRequired bool    `json:"tokenRequired,omitempty"`
	// Access are the policies about callers that concern the request, in the order in which
	// they are evaluated.
	Access []Access `json:"access,omitempty"`
	// Passed are the preceding routes, in order, that did not match the request.
	Passed []Passed `json:"passed,omitempty"`
	Route  *Route   `json:"route,omitempty"`
	// Answer is the proxy's own response; nil if it forwards or closes the
	// connection.
	Answer *Answer `json:"answer,omitempty"`
	// Forward says what is sent to clusters; nil if nothing is.
	Forward *Forward `json:"forward,omitempty"`
	// Reason says why no route was taken; "" if one was.
	Reason string `json:"reason,omitempty"`
}

// Listener is the listener that takes a connection.
type Listener struct {
	Address   string     `json:"address"`
	Direction string     `json:"direction"`
	Origins   []diag.Ref `json:"origins,omitempty"`
}

// Passed is a route that did not match the request.
type Passed struct {
	Name    string     `json:"name,omitempty"`
	Match   string     `json:"match"`
	Origins []diag.Ref `json:"origins,omitempty"`
	// Failed is the first condition that does not hold, with the value found.
	Failed string `json:"failed"`
}

// Route is the route that matched. Number is its position, from 1, among the Of
// routes of its virtual host or listener.
type Route struct {
	Number  int        `json:"number"`
	Of      int        `json:"of"`
	Name    string     `json:"name,omitempty"`
	Match   string     `json:"match"`
	Origins []diag.Ref `json:"origins,omitempty"`
}

// Answer is a response that the proxy gives itself.
type Answer struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
	Body     string `json:"body,omitempty"`
}

// Ask explains a request that the proxy's workload or, at the edge, one of its
// clients sends. It determines the way that the request takes.
func (p Proxy) Ask(r Request) *Explanation { return p.Explain(p.enter(r)) }

// Explain explains a request that arrives on the way that it names.
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
	r, refused := r.taken(taken)
	switch begins := r.beginsTLS(); {
	case taken.TLS != nil && !begins:
		e.Reason = "the connection is closed: the listener speaks TLS, and this is plain " + r.Scheme
	case taken.HTTP != nil && taken.TLS == nil && begins:
		e.Reason = "the connection is closed: the listener speaks plain HTTP, and the caller begins TLS"
	case refused != "":
		e.Reason = "the connection is closed: " + refused
	case taken.HTTP != nil:
		p.http(taken.HTTP, r, e)
	case taken.TCP != nil:
		p.tcp(taken.TCP, taken.Origins, r, e)
	default:
		e.Reason = "the connection is closed: no listener is for " + destination(r)
	}
	return e
}

// http routes the request by a table.
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
	if h.Access != nil && h.Access.Paths && escapedSlash.MatchString(r.Path) {
		e.Answer, e.Reason = &Answer{Status: http.StatusBadRequest}, "policies compare paths, and a path with an escaped slash has several spellings"
		return
	}
	r, refusal := e.verify(h.Tokens, r)
	if refusal != nil {
		e.Answer = refusal
		return
	}
	if e.decide(h.Access, r) {
		e.Answer = &Answer{Status: http.StatusForbidden, Body: "RBAC: access denied"}
		e.Reason = "a policy about callers refuses the request"
		if e.TokenRequired = tokenWouldHelp(h, r); e.TokenRequired {
			e.Reason += "; it has no token, and one with the right token may be taken"
		}
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

// table returns the table of a listener, and an empty one if it does not exist.
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
