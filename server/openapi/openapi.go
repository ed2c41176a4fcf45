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
	"strings"

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
	GVK          Node // of the objects; nil if they are of several kinds
}

// Content describes a body.
type Content struct {
	Media []string
	Shape Shape
}

// ObjectTypes are the media types of an object.
var ObjectTypes = slices.Concat(wire.JSON.Names(), wire.YAML.Names())

// GVK describes a kind in an apiVersion, "group/version".
func GVK(apiVersion, kind string) Node {
	group, version, _ := strings.Cut(apiVersion, "/")
	return Node{"group": group, "version": version, "kind": kind}
}
