package objects

import (
	"net/http"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Endpoints returns the endpoints of one kind in one version, for all namespaces and for
// one. watch answers its watches.
func (a *API) Endpoints(kind *schema.Kind, version string, watch wire.Handler) []openapi.Endpoint {
	k := a.of(kind, version)
	all := kind.Root(version) + "/" + kind.Plural
	collection := kind.Root(version) + "/namespaces/{namespace}/" + kind.Plural
	if kind.Cluster {
		collection = all
	}
	object := collection + "/{name}"
	one := openapi.Content{Media: wire.ObjectTypes, Shape: openapi.ObjectShape(kind, version)}
	sent := openapi.Content{Media: objectTypesOf(kind), Shape: one.Shape}
	list := openapi.Content{Media: wire.ObjectTypes, Shape: openapi.ListShape(kind, version)}
	options := &openapi.Content{Media: wire.ObjectTypes, Shape: openapi.AnyShape}
	part := &openapi.Content{Media: slices.Concat(patchTypesOf(kind), applyTypes), Shape: openapi.AnyShape}
	endpoints := []openapi.Endpoint{
		{Method: http.MethodGet, Path: all, Handler: k.list, Watch: watch, Params: render.ListParams, Success: 200, Answer: list,
			Doc: ofAllNamespaces},
		{Method: http.MethodGet, Path: collection, Handler: k.list, Watch: watch, Params: render.ListParams, Success: 200, Answer: list,
			Doc: "Lists or watches the objects of a namespace."},
		{Method: http.MethodPost, Path: collection, Handler: k.admitted(k.create), Params: writeParams, Body: &sent, Success: 201, Answer: one,
			Doc: "Creates an object."},
		{Method: http.MethodDelete, Path: collection, Handler: k.admitted(k.deleteCollection), Params: deleteCollectionParams, Body: options, Success: 200, Answer: list,
			Doc: "Deletes the selected objects; without a selector, all."},
		{Method: http.MethodGet, Path: object, Handler: k.get, Params: getParams, Success: 200, Answer: one,
			Doc: "Returns the stored object, with its status."},
		{Method: http.MethodGet, Path: object + "/status", Handler: k.get, Params: getParams, Success: 200, Answer: one,
			Doc: "Returns the object, with its status."},
		{Method: http.MethodGet, Path: object + "/history", Handler: k.history, Params: historyParams, Success: 200, Answer: openapi.AnswerOf(historyAnswer{}),
			Doc: "Lists the known versions of the object, the newest first."},
		{Method: http.MethodGet, Path: object + "/history/{revision}", Handler: k.atRevision, Params: historyParams, Success: 200, Answer: one,
			Doc: "Returns the object as it was at a revision."},
		{Method: http.MethodPut, Path: object, Handler: k.admitted(k.update), Params: writeParams, Body: &sent, Success: 200, Answer: one,
			Doc: "Replaces the object."},
		{Method: http.MethodPatch, Path: object, Handler: k.admitted(k.patch), Params: patchParams, Body: part, Success: 200, Answer: one,
			Doc: "Changes a part of the object, or applies an object."},
		{Method: http.MethodDelete, Path: object, Handler: k.admitted(k.delete), Params: deleteParams, Body: options, Success: 200, Answer: one,
			Doc: "Deletes the object."},
	}
	endpoints = slices.DeleteFunc(endpoints, func(e openapi.Endpoint) bool {
		return kind.Flat && strings.HasSuffix(e.Path, "/status") || kind.Cluster && e.Doc == ofAllNamespaces
	})
	return openapi.Of(openapi.GVK(kind.In(version), kind.Kind), endpoints...)
}

// ofAllNamespaces describes the endpoint that a kind without namespaces does not have.
const ofAllNamespaces = "Lists or watches the objects of all namespaces."

// ChangesEndpoint returns the endpoint of the changes of objects of all kinds.
func (a *API) ChangesEndpoint() openapi.Endpoint {
	return openapi.Endpoint{Method: http.MethodGet, Path: changesPath, Handler: a.changes, Params: changesParams, Success: 200, Answer: openapi.AnswerOf(changesAnswer{}),
		Doc: "Lists the changes since a revision."}
}
