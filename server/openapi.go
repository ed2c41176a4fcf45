package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
)

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
		return answer.WriteJSON(w, r, openapi.Node{"swagger": "2.0", "info": s.openAPIInfo(), "paths": openapi.Node{}})
	}
	w.Header().Set("Content-Type", protobufV2)
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) openAPIInfo() openapi.Node {
	return openapi.Node{"title": "pilot-api", "version": cmp.Or(s.opts.Version.GitVersion, "unknown")}
}

// openAPIPaths answers /openapi/v3 with the list of documents.
func (s *Server) openAPIPaths(w http.ResponseWriter, r *http.Request) error {
	paths := openapi.Node{"api/" + coreVersion: openapi.Node{"serverRelativeURL": "/openapi/v3/api/" + coreVersion}}
	for _, there := range catalogue() {
		name := "apis/" + there.GroupVersion
		paths[name] = openapi.Node{"serverRelativeURL": "/openapi/v3/" + name}
	}
	return answer.WriteJSON(w, r, openapi.Node{"paths": paths})
}

// openAPI answers with the document of one group and version: its paths, their
// requests and responses, and the meaning of the fields of objects. kubectl also
// finds in it which patches are accepted and that the server validates fields.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	asked := groupVersion(r)
	if r.URL.Path == "/openapi/v3/api/"+coreVersion {
		asked = coreVersion
	}
	doc := openapi.NewDocument()
	switch asked {
	case wire.RegistryVersion:
		doc.Add(s.registryEndpoints())
	case reviewsVersion, whoVersion, coreVersion:
		doc.Add(slices.DeleteFunc(s.reviewEndpoints(), func(e openapi.Endpoint) bool {
			return !strings.HasPrefix(e.Path, "/apis/"+asked+"/") && !strings.HasPrefix(e.Path, "/api/"+asked+"/")
		}))
	}
	for _, kind := range schema.Kinds() {
		for _, version := range kind.Versions() {
			if kind.In(version) == asked {
				doc.Add(s.kindEndpoints(kind, version))
			}
		}
	}
	if len(doc.Paths) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	return answer.WriteJSON(w, r, openapi.Node{
		"openapi":    "3.0.0",
		"info":       s.openAPIInfo(),
		"paths":      doc.Paths,
		"components": openapi.Node{"schemas": doc.Definitions},
	})
}
