package server

import (
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// document is the part of an OpenAPI document that describes endpoints.
type document struct {
	paths, definitions map[string]node
}

// add describes endpoints of a kind. kind is nil for endpoints of several kinds.
func (d document) add(kind *schema.Kind, endpoints []endpoint) {
	for _, e := range endpoints {
		path := d.paths[e.path]
		if path == nil {
			path = node{"parameters": pathParameters(e.path)}
			d.paths[e.path] = path
		}
		path[strings.ToLower(e.method)] = d.operation(kind, e)
	}
}

func (d document) operation(kind *schema.Kind, e endpoint) node {
	parameters := queryParameters(e.params)
	if e.method != http.MethodGet && strings.HasSuffix(e.path, "/{name}") {
		parameters = append(parameters, ifMatchParameter)
	}
	if e.method == http.MethodPut {
		parameters = append(parameters, ifNoneMatchParameter)
	}
	out := node{"description": e.doc, "parameters": parameters, "responses": d.responses(e)}
	if e.body != nil {
		out["requestBody"] = node{"required": e.method != http.MethodDelete, "content": d.content(*e.body)}
	}
	if kind != nil {
		out["x-kubernetes-action"] = strings.ToLower(e.method)
		out["x-kubernetes-group-version-kind"] = gvk(kind, "")
	}
	return out
}

// content describes a body for each of its media types. It adds the definitions
// that the body refers to.
func (d document) content(c content) node {
	maps.Copy(d.definitions, c.shape.definitions)
	out := node{}
	for _, media := range c.media {
		out[media] = node{"schema": c.shape.schema}
	}
	return out
}

// responses returns the success of an endpoint, and a Status for each failure.
func (d document) responses(e endpoint) node {
	out := node{strconv.Itoa(e.success): node{"description": e.doc, "content": d.content(e.answer)}}
	if e.method == http.MethodPatch {
		out[strconv.Itoa(http.StatusCreated)] = node{"description": "What was applied, where nothing was.", "content": d.content(e.answer)}
	}
	if e.method == http.MethodPut {
		out[strconv.Itoa(http.StatusCreated)] = node{"description": "What was created for If-None-Match: *.", "content": d.content(e.answer)}
	}
	if e.method == http.MethodGet {
		out[strconv.Itoa(http.StatusNotModified)] = node{"description": "What has the ETag of If-None-Match."}
	}
	failure := content{objectTypes, statusShape}
	for _, code := range failuresOf(e) {
		out[strconv.Itoa(code)] = node{"description": http.StatusText(code), "content": d.content(failure)}
	}
	return out
}

// failuresOf returns the failure codes of an endpoint.
func failuresOf(e endpoint) []int {
	codes := []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	if e.method != http.MethodGet {
		codes = append(codes, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnsupportedMediaType,
			http.StatusInsufficientStorage)
	}
	return codes
}

var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

func pathParameters(path string) []node {
	out := []node{}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		out = append(out, node{"name": m[1], "in": "path", "required": true, "schema": node{"type": "string"}})
	}
	return out
}

func queryParameters(names []string) []node {
	out := []node{}
	for _, name := range names {
		p := parameters[name]
		out = append(out, node{"name": name, "in": "query", "description": p.doc, "schema": node{"type": p.kind}})
	}
	return out
}

var ifMatchParameter = node{
	"name": "If-Match", "in": "header", "schema": node{"type": "string"},
	"description": "The ETag that the object must have, or * for any; of the ETag the resourceVersion counts.",
}

var ifNoneMatchParameter = node{
	"name": "If-None-Match", "in": "header", "schema": node{"type": "string", "enum": []string{"*"}},
	"description": "*: the object is created, and none is replaced.",
}

// parameters are all query parameters.
var parameters = map[string]struct{ kind, doc string }{
	"api":                  {"string", "v1: also what Envoys of that API would lose."},
	"allowWatchBookmarks":  {"boolean", "Tells from time to time how far the watch is."},
	"continue":             {"string", "Where the page before ended, as its list says."},
	"dryRun":               {"string", "All: everything is checked, nothing is written."},
	"fieldManager":         {"string", "Who changes the fields."},
	"fieldSelector":        {"string", "Fields that the objects have, such as metadata.name=a."},
	"fieldValidation":      {"string", "Strict, as without it: unknown fields are refused."},
	"force":                {"boolean", "Takes fields that others own, of an apply."},
	"freshStatus":          {"boolean", "The status is looked up for this request."},
	"gracePeriodSeconds":   {"integer", "Taken for the sake of clients: deletion is at once."},
	"header":               {"string", "NAME: VALUE, of the request that is asked about; may be there several times."},
	"includeObject":        {"string", "What the rows of a table have: Metadata, Object or None."},
	"kind":                 {"string", "The kind of the objects."},
	"kinds":                {"string", "The kinds to watch, with commas between; all unless given."},
	"labels":               {"string", "Labels of a proxy that is not known, as in app=web,version=v1."},
	"labelSelector":        {"string", "Labels that the objects have, such as app=web,version!=v1."},
	"limit":                {"integer", "How many objects a page has at most."},
	"local":                {"boolean", "Of this replica only."},
	"maxAge":               {"string", "How old the answer may be, such as 5s."},
	"method":               {"string", "Of the request that is asked about; GET unless given."},
	"name":                 {"string", "The name of the object."},
	"namespace":            {"string", "The namespace of the objects."},
	"object":               {"string", "KIND/NAMESPACE/NAME."},
	"orphanDependents":     {"boolean", "Taken for the sake of clients."},
	"pretty":               {"string", "Taken for the sake of clients."},
	"propagationPolicy":    {"string", "What becomes of what the object owns, which is nothing."},
	"resourceVersion":      {"string", "How fresh the answer must be, or where a watch begins."},
	"resourceVersionMatch": {"string", "How resourceVersion is meant: Exact or NotOlderThan."},
	"sendInitialEvents":    {"boolean", "A watch begins with the objects that are there."},
	"since":                {"integer", "The revision with which is compared."},
	"statusEvents":         {"boolean", "A watch tells changes of the status too."},
	"summary":              {"boolean", "What the resources come to, instead of themselves."},
	"timeout":              {"string", "How long the answer may take, such as 30s."},
	"timeoutSeconds":       {"integer", "When a watch ends."},
	"transport":            {"string", "What resources are spelled for: delta, ads, rest or grpc; what the proxy is told over unless given."},
	"url":                  {"string", "Of the request that is asked about."},
	"watch":                {"boolean", "The changes as they happen, in place of a list."},
	"wholeRevisions":       {"boolean", "A resumed watch begins with all of the revision that it was in."},
}
