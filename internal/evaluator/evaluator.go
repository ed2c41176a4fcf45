// Package evaluator tells what an Envoy would do with a request, from the
// configuration that it was given alone: test support, to hold what two Envoy
// versions are told against each other.
//
//	v1*.go        reads v1 answers (JSON) into a Proxy
//	v3*.go        reads v3 resources (messages) into a Proxy
//	proxy.go      the Proxy: listeners, route tables, clusters, in no dialect
//	read.go       what both readers hold an Envoy's configuration to
//	evaluate.go   Request and Proxy → Outcome
//	accept.go     the listener that takes a connection
//	choose.go     the virtual host of an authority, the route of a request
//	match.go      conditions on path, headers and query
//	forward.go    what a route does to a request
//	outcome.go    the Outcome
//
// The package imports nothing of the project and knows nothing of what the
// configuration was made from. Readers refuse every field that they do not
// know, so that nothing an Envoy would act on is passed over. Rules are those
// of Envoy's documentation; where the versions differ, the reader translates:
// a v3 filter chain match becomes an ordered list, a v1 prefix is one that sees
// the query. What is not told apart: ECMAScript from RE2 expressions (all are
// run as RE2), several values of one header, percent-encoding, and filters
// other than cors, fault and router.
package evaluator

import (
	"net/netip"
	"strings"
)

// Request comes to a proxy over a connection of its own.
type Request struct {
	// Destination is the address that a captured connection was going to,
	// or else the listener's own that the client connects to.
	Destination netip.AddrPort
	Captured    bool
	// ServerName is what the client asks for in the clear when it begins TLS;
	// "" for one that does not.
	ServerName string
	// AbsoluteForm: the request line holds the whole URL, as for a proxy.
	AbsoluteForm bool
	Method, Host string
	// Path holds the query too.
	Path string
	// Headers by lower-case name; no pseudo-headers.
	Headers map[string]string
}

// header is the value of a header or pseudo-header.
func (r Request) header(name string) (string, bool) {
	switch name {
	case ":method":
		return r.Method, true
	case ":authority", "host":
		return r.Host, true
	case ":path":
		return r.Path, true
	case ":scheme":
		return "http", true
	}
	value, ok := r.Headers[strings.ToLower(name)]
	return value, ok
}

// bare is the path without the query, and the query with its question mark.
func (r Request) bare() (path, query string) {
	if i := strings.IndexByte(r.Path, '?'); i >= 0 {
		return r.Path[:i], r.Path[i:]
	}
	return r.Path, ""
}
