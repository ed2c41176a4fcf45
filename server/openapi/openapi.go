// Package openapi describes the endpoints of the server as OpenAPI documents. The server
// takes its routes from the same endpoints.
//
//	openapi.go     what is described
//	document.go    the description of endpoints
//	shape.go       schemas of bodies
//	parameters.go  query parameters
package openapi

import (
	"strings"

	"github.com/pilot-api/pilot-api/server/wire"
)

// Node is a piece of an OpenAPI document.
type Node map[string]any

// Endpoint is one method on one path.
type Endpoint struct {
	Method, Path string
	// Handler answers a request within a bounded time; nil if Watch answers all requests.
	Handler wire.Handler
	// Watch answers requests with watch=true as long as they last; nil if there are none.
	Watch   wire.Handler
	Doc     string
	Params  []string // allowed in the query
	Body    *Content // of a request; nil if there is none
	Success int      // the only code of success
	// Failures are codes of failure beside those that any endpoint may answer with.
	Failures []int
	Answer   Content
	GVK      Node // of the objects; nil if they are of several kinds
}

// Content describes a body.
type Content struct {
	Media []string
	Shape Shape
}

// GVK describes a kind in an apiVersion, "group/version".
func GVK(apiVersion, kind string) Node {
	group, version, _ := strings.Cut(apiVersion, "/")
	return Node{"group": group, "version": version, "kind": kind}
}

// Of returns the endpoints, marked as those for objects of a kind.
func Of(gvk Node, endpoints ...Endpoint) []Endpoint {
	for i := range endpoints {
		endpoints[i].GVK = gvk
	}
	return endpoints
}
