package server

import (
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// node is a piece of an OpenAPI document.
type node map[string]any

// An OpenAPI v2 document in protobuf, as kubectl asks for it and as it reads
// it: the name that it asks by is no valid media type.
const (
	acceptedV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// openAPIv2 answers with a document without definitions: kubectl reads it
// before it takes a "kind: List" apart, and leaves what it does not find there
// to the server to check. In protobuf that is the empty message.
func (s *Server) openAPIv2(w http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(r.Header.Get("Accept"), acceptedV2) {
		return writeJSON(w, r, node{"swagger": "2.0", "info": s.openAPIInfo(), "paths": node{}})
	}
	w.Header().Set("Content-Type", protobufV2)
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) openAPIInfo() node {
	return node{"title": "pilot-api", "version": s.opts.Version.GitVersion}
}

// openAPIPaths answers /openapi/v3: which documents there are.
func (s *Server) openAPIPaths(w http.ResponseWriter, r *http.Request) error {
	paths := node{}
	for _, kind := range schema.Kinds() {
		name := "apis/" + kind.APIVersion()
		paths[name] = node{"serverRelativeURL": "/openapi/v3/" + name}
	}
	return writeJSON(w, r, node{"paths": paths})
}

// openAPI answers the document of one group and version. It says what kubectl
// asks it for: that fields are validated by the server, which patches are
// taken, how the kinds are called, and what their fields mean.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	kinds := kindsOf(groupVersion(r))
	if len(kinds) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	paths, schemas := node{}, node{}
	for _, kind := range kinds {
		collection := "/apis/" + kind.APIVersion() + "/namespaces/{namespace}/" + kind.Plural
		paths[collection] = node{"post": writeOperation(kind, "post", objectTypes)}
		paths[collection+"/{name}"] = node{
			"put":   writeOperation(kind, "put", objectTypes),
			"patch": writeOperation(kind, "patch", patchTypes),
		}
		schemas[kind.Group+"."+kind.Version+"."+kind.Kind] = objectSchema(kind)
	}
	return writeJSON(w, r, node{
		"openapi":    "3.0.0",
		"info":       s.openAPIInfo(),
		"paths":      paths,
		"components": node{"schemas": schemas},
	})
}

func writeOperation(kind *schema.Kind, action string, mediaTypes []string) node {
	content := node{}
	for _, media := range mediaTypes {
		content[media] = node{"schema": node{"type": "object"}}
	}
	var parameters []node
	for _, name := range writeParams {
		parameters = append(parameters, node{"name": name, "in": "query", "schema": node{"type": "string"}})
	}
	return node{
		"parameters":                      parameters,
		"requestBody":                     node{"content": content},
		"responses":                       node{"200": node{"description": "The object as it is stored."}},
		"x-kubernetes-action":             action,
		"x-kubernetes-group-version-kind": gvk(kind),
	}
}

func gvk(kind *schema.Kind) node {
	return node{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

func objectSchema(kind *schema.Kind) node {
	return node{
		"type":        "object",
		"description": kind.Doc,
		"properties": node{
			"apiVersion": node{"type": "string", "description": "Must be " + kind.APIVersion() + "."},
			"kind":       node{"type": "string", "description": "Must be " + kind.Kind + "."},
			"metadata":   schema.MetadataOpenAPI(),
			"spec":       kind.OpenAPI(),
		},
		"x-kubernetes-group-version-kind": []node{gvk(kind)},
	}
}
