package openapi

import (
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/server/wire"
)

// Document is the part of an OpenAPI document that describes endpoints.
type Document struct {
	Paths, Definitions map[string]Node
}

// NewDocument returns a document without endpoints.
func NewDocument() Document { return Document{map[string]Node{}, map[string]Node{}} }

// Add describes endpoints.
func (d Document) Add(endpoints []Endpoint) {
	for _, e := range endpoints {
		path := d.Paths[e.Path]
		if path == nil {
			path = Node{"parameters": pathParameters(e.Path)}
			d.Paths[e.Path] = path
		}
		path[strings.ToLower(e.Method)] = d.operation(e)
	}
}

func (d Document) operation(e Endpoint) Node {
	parameters := queryParameters(e.Params)
	if e.Method != http.MethodGet && strings.HasSuffix(e.Path, "/{name}") {
		parameters = append(parameters, ifMatchParameter)
	}
	if e.Method == http.MethodPut {
		parameters = append(parameters, ifNoneMatchParameter)
	}
	out := Node{"description": e.Doc, "parameters": parameters, "responses": d.responses(e)}
	if e.Body != nil {
		out["requestBody"] = Node{"required": e.Method != http.MethodDelete, "content": d.content(*e.Body)}
	}
	if e.GVK != nil {
		out["x-kubernetes-action"] = strings.ToLower(e.Method)
		out["x-kubernetes-group-version-kind"] = e.GVK
	}
	return out
}

// content describes a body for each of its media types. It adds the definitions
// that the body refers to.
func (d Document) content(c Content) Node {
	maps.Copy(d.Definitions, c.Shape.definitions)
	out := Node{}
	for _, media := range c.Media {
		out[media] = Node{"schema": c.Shape.schema}
	}
	return out
}

// responses returns the success of an endpoint, and a Status for each failure.
func (d Document) responses(e Endpoint) Node {
	out := Node{strconv.Itoa(e.Success): Node{"description": e.Doc, "content": d.content(e.Answer)}}
	if e.Method == http.MethodPatch {
		out[strconv.Itoa(http.StatusCreated)] = Node{"description": "The applied object, if there was none before.", "content": d.content(e.Answer)}
	}
	if e.Method == http.MethodPut {
		out[strconv.Itoa(http.StatusCreated)] = Node{"description": "The created object, for If-None-Match: *.", "content": d.content(e.Answer)}
	}
	if e.Method == http.MethodGet {
		out[strconv.Itoa(http.StatusNotModified)] = Node{"description": "The answer still has the ETag of If-None-Match."}
	}
	failure := Content{wire.ObjectTypes, statusShape}
	for _, code := range failuresOf(e) {
		out[strconv.Itoa(code)] = Node{"description": http.StatusText(code), "content": d.content(failure)}
	}
	return out
}

// failuresOf returns the failure codes of an endpoint.
func failuresOf(e Endpoint) []int {
	codes := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusInsufficientStorage, // Reads, too, if a strict audit log has them and cannot be written.
	}
	codes = append(codes, e.Failures...)
	if e.Method != http.MethodGet {
		codes = append(codes, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnsupportedMediaType)
	}
	return codes
}

var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

func pathParameters(path string) []Node {
	out := []Node{}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		out = append(out, Node{"name": m[1], "in": "path", "required": true, "schema": Node{"type": "string"}})
	}
	return out
}

func queryParameters(names []string) []Node {
	out := []Node{}
	for _, name := range names {
		p := parameters[name]
		out = append(out, Node{"name": name, "in": "query", "description": p.doc, "schema": Node{"type": p.kind}})
	}
	return out
}

var ifMatchParameter = Node{
	"name": "If-Match", "in": "header", "schema": Node{"type": "string"},
	"description": "The ETag that the object must have, or * for any. Only the resourceVersion in it counts.",
}

var ifNoneMatchParameter = Node{
	"name": "If-None-Match", "in": "header", "schema": Node{"type": "string", "enum": []string{"*"}},
	"description": "*: create the object, and replace none.",
}
