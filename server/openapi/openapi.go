// Package openapi describes the endpoints of the server as OpenAPI documents: the server
// routes by the same endpoints.
//
//	openapi.go     what is described
//	document.go    the description of endpoints
//	shape.go       schemas of bodies
//	parameters.go  query parameters
package openapi

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Node is a piece of an OpenAPI document.
type Node map[string]any

// Endpoint is one method on one path.
type Endpoint struct {
	Method, Path string
	Handler      http.HandlerFunc
	Doc          string
	Params       []string // allowed in the query
	Body         *Content // of a request; nil if there is none
	Success      int      // the only code of success
	Answer       Content
}

// Content describes a body.
type Content struct {
	Media []string
	Shape Shape
}

// ObjectTypes are the media types of an object.
var ObjectTypes = slices.Concat(wire.JSON.Names(), wire.YAML.Names())

// gvk returns the group, version and kind of a kind, or with suffix "List" of its
// lists.
func gvk(kind *schema.Kind, version, suffix string) Node {
	return Node{"group": kind.Group, "version": version, "kind": kind.Kind + suffix}
}
