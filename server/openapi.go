package server

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// node is a piece of an OpenAPI document.
type node map[string]any

// Media types of an OpenAPI v2 document in protobuf: acceptedV2 is kubectl's
// Accept, which is not a valid media type, and protobufV2 is what kubectl reads.
const (
	acceptedV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// openAPIv2 answers with a document without definitions. kubectl reads it before it
// splits a "kind: List", and leaves the validation of kinds that are not in it to
// the server. In protobuf the document is the empty message.
func (s *Server) openAPIv2(w http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(r.Header.Get("Accept"), acceptedV2) {
		return writeJSON(w, r, node{"swagger": "2.0", "info": s.openAPIInfo(), "paths": node{}})
	}
	w.Header().Set("Content-Type", protobufV2)
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) openAPIInfo() node {
	return node{"title": "pilot-api", "version": cmp.Or(s.opts.Version.GitVersion, "unknown")}
}

// openAPIPaths answers /openapi/v3 with the list of documents.
func (s *Server) openAPIPaths(w http.ResponseWriter, r *http.Request) error {
	paths := node{}
	for _, there := range catalogue() {
		name := "apis/" + there.GroupVersion
		paths[name] = node{"serverRelativeURL": "/openapi/v3/" + name}
	}
	return writeJSON(w, r, node{"paths": paths})
}

// openAPI answers with the document of one group and version: its paths, their
// requests and responses, and the meaning of the fields of objects. kubectl also
// finds in it which patches are accepted and that the server validates fields.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	version := groupVersion(r)
	doc := document{paths: map[string]node{}, definitions: map[string]node{}}
	switch version {
	case registryVersion:
		doc.add(nil, s.registryEndpoints())
	case reviewsVersion:
		doc.add(nil, s.reviewEndpoints())
	}
	for _, kind := range kindsOf(version) {
		doc.add(kind, s.kindEndpoints(kind))
	}
	if len(doc.paths) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	return writeJSON(w, r, node{
		"openapi":    "3.0.0",
		"info":       s.openAPIInfo(),
		"paths":      doc.paths,
		"components": node{"schemas": doc.definitions},
	})
}

// gvk returns the group, version and kind of a kind, or with suffix "List" of its
// lists.
func gvk(kind *schema.Kind, suffix string) node {
	return node{"group": kind.Group, "version": kind.Version, "kind": kind.Kind + suffix}
}
