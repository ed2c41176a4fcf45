// Package evaluator computes what an Envoy would do with a request, from its
// configuration alone. It is test support: it compares the configurations of two Envoy
// versions.
//
//	v1*.go        reads v1 answers (JSON) into a Proxy
//	v3*.go        reads v3 resources (messages) into a Proxy
//	proxy.go      the Proxy: listeners, route tables, clusters, in no dialect
//	read.go       what both readers require of an Envoy's configuration
//	evaluate.go   Request and Proxy → Outcome
//	accept.go     the listener that accepts a connection
//	choose.go     the virtual host of an authority, the route of a request
//	match.go      conditions on path, headers and query
//	forward.go    what a route does to a request
//	outcome.go    the Outcome
//	access.go     RBAC filters: AccessRequest and filters → taken or refused
//
// The package imports nothing of the project and knows nothing of the configuration's
// sources. Readers refuse every field that they do not know, so that they ignore nothing
// that an Envoy would act on. The rules are those of Envoy's documentation. Where the
// versions differ, the reader translates: a v3 filter chain match becomes an ordered
// list, and a v1 prefix is one that sees the query. The package does not distinguish
// ECMAScript from RE2 expressions (it runs all as RE2), and it does not cover several
// values of one header, percent-encoding, or filters other than cors, fault and router.
package evaluator

import (
	"net/netip"
	"strings"
)

// Request is a request that arrives over a connection of its own.
type Request struct {
	// Destination is the original destination of a captured connection,
	// or otherwise the address of the listener that the client connects to.
	Destination netip.AddrPort
	Captured    bool
	// ServerName is the name that the client asks for, unencrypted, when it begins TLS.
	// It is "" without TLS.
	ServerName string
	// AbsoluteForm means that the request line contains the whole URL, as for a proxy.
	AbsoluteForm bool
	Method, Host string
	// Path includes the query.
	Path string
	// Headers are by lower-case name, without pseudo-headers.
	Headers map[string]string
}

// header returns the value of a header or pseudo-header.
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

// bare returns the path without the query, and the query with its question mark.
func (r Request) bare() (path, query string) {
	if i := strings.IndexByte(r.Path, '?'); i >= 0 {
		return r.Path[:i], r.Path[i:]
	}
	return r.Path, ""
}
