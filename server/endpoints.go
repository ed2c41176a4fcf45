package server

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	authorization "k8s.io/api/authorization/v1"

	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
)

// streamTypes are the media types of a watch.
var streamTypes = slices.Concat(wire.JSON.Names(), wire.Events.Names())

// kindEndpoints returns the endpoints of one kind in one version, for all namespaces
// and for one.
func (s *Server) kindEndpoints(kind *schema.Kind, version string) []openapi.Endpoint {
	k := &resource{Server: s, kind: kind, version: version}
	all := "/apis/" + kind.In(version) + "/" + kind.Plural
	collection := "/apis/" + kind.In(version) + "/namespaces/{namespace}/" + kind.Plural
	object := collection + "/{name}"
	one := openapi.Content{Media: objectTypes, Shape: openapi.ObjectShape(kind, version)}
	list := openapi.Content{Media: objectTypes, Shape: openapi.ListShape(kind, version)}
	get, post, put, patch, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	return of(openapi.GVK(kind.In(version), kind.Kind),
		endpoint(get, all, k.listOrWatch, "Lists or watches the objects of all namespaces.", listParams, nil, 200, list),
		endpoint(get, collection, k.listOrWatch, "Lists or watches the objects of a namespace.", listParams, nil, 200, list),
		endpoint(post, collection, s.bounded(k.admitted(k.create)), "Creates an object.", writeParams, &one, 201, one),
		endpoint(del, collection, s.bounded(k.admitted(k.deleteCollection)), "Deletes the selected objects; without a selector, all.", deleteCollectionParams, &openapi.Content{Media: objectTypes, Shape: openapi.AnyShape}, 200, list),
		endpoint(get, object, s.bounded(k.get), "Returns the stored object, with its status.", getParams, nil, 200, one),
		endpoint(get, object+"/status", s.bounded(k.get), "Returns the object, with its status.", getParams, nil, 200, one),
		endpoint(get, object+"/history", s.bounded(k.history), "Lists the known versions of the object, the newest first.", historyParams, nil, 200, openapi.AnswerOf(historyAnswer{})),
		endpoint(get, object+"/history/{revision}", s.bounded(k.atRevision), "Returns the object as it was at a revision.", historyParams, nil, 200, one),
		endpoint(put, object, s.bounded(k.admitted(k.update)), "Replaces the object.", writeParams, &one, 200, one),
		endpoint(patch, object, s.bounded(k.admitted(k.patch)), "Changes a part of the object, or applies an object.", patchParams, &openapi.Content{Media: slices.Concat(patchTypes, applyTypes), Shape: openapi.AnyShape}, 200, one),
		endpoint(del, object, s.bounded(k.admitted(k.delete)), "Deletes the object.", deleteParams, &openapi.Content{Media: objectTypes, Shape: openapi.AnyShape}, 200, one),
	)
}

// of returns endpoints for objects of a kind.
func of(gvk openapi.Node, endpoints ...openapi.Endpoint) []openapi.Endpoint {
	for i := range endpoints {
		endpoints[i].GVK = gvk
	}
	return endpoints
}

// registryEndpoints returns the endpoints for objects of several kinds and for
// proxies.
func (s *Server) registryEndpoints() []openapi.Endpoint {
	some := &resource{Server: s}
	get, post := http.MethodGet, http.MethodPost
	actionOf := func(kind string, v any) openapi.Content {
		return openapi.Content{Media: objectTypes, Shape: openapi.ActionShape(registryVersion, kind, v)}
	}
	transacts, rollsBack := actionOf(kindTransaction, transaction{}), actionOf(kindRollback, rollback{})
	out := []openapi.Endpoint{
		endpoint(get, watchPath, s.handle(s.watchKinds), "Watches objects of several kinds.", watchKindsParams, nil, 200, openapi.Content{Media: streamTypes, Shape: openapi.AnyShape}),
		endpoint(get, changesPath, s.bounded(s.changes), "Lists the changes since a revision.", changesParams, nil, 200, openapi.AnswerOf(changesAnswer{})),
	}
	out = append(out, of(openapi.GVK(registryVersion, kindTransaction),
		endpoint(post, transactionsPath, s.bounded(some.withBody(maxTransaction, s.transaction)), "Performs all operations at one revision, or none of them.", transactionParams, &transacts, 201, transacts))...)
	out = append(out, of(openapi.GVK(registryVersion, kindRollback),
		endpoint(post, rollbacksPath, s.bounded(some.admittedFor(rollbackWeight, s.rollback)), "Returns an object or a namespace to its state at a revision.", rollbackParams, &rollsBack, 201, rollsBack))...)
	if s.opts.Discovery == nil {
		return out
	}
	routeParams := append(inspectParams[:len(inspectParams):len(inspectParams)], "url", "method", "header")
	configParams := append(inspectParams[:len(inspectParams):len(inspectParams)], "summary", "transport")
	return append(out,
		endpoint(get, referencesPath, s.bounded(s.references), "Lists the references from an object, and to it.", referenceParams, nil, 200, openapi.AnswerOf(referencesAnswer{})),
		endpoint(get, proxiesPath, s.bounded(s.proxies), "Lists the connected proxies.", proxyParams, nil, 200, openapi.AnswerOf([]proxy{})),
		endpoint(get, standingsPath, s.bounded(s.standings), "Reports how many proxies of this replica have each object, and run it.", standingsParams, nil, 200, openapi.AnswerOf(status.Report{})),
		endpoint(get, proxiesPath+"/{node}", s.bounded(s.proxy), "Lists the connections of one proxy.", proxyParams, nil, 200, openapi.AnswerOf([]proxy{})),
		endpoint(get, proxiesPath+"/{node}/config/{type}", s.bounded(s.proxyConfig), "Returns the resources of one type, or of all types, that a proxy is sent.", configParams, nil, 200, openapi.AnswerOf(inspected{})),
		endpoint(get, proxiesPath+"/{node}/route", s.bounded(s.proxyRoute), "Explains what a proxy does with a request, or lists its routes.", routeParams, nil, 200, openapi.AnswerOf(struct {
			inspected
			*explain.Explanation
		}{})),
		endpoint(post, previewPath, s.bounded(some.admitted(s.preview)), "Shows how objects would change the configuration of proxies.", previewParams, &openapi.Content{Media: objectTypes, Shape: openapi.AnyShape}, 200, openapi.AnswerOf(previewed{})),
	)
}

// reviewEndpoints returns the endpoints that report what the caller may do.
func (s *Server) reviewEndpoints() []openapi.Endpoint {
	some := &resource{Server: s}
	access, rules := openapi.ShapeOf(authorization.SelfSubjectAccessReview{}), openapi.ShapeOf(authorization.SelfSubjectRulesReview{})
	return []openapi.Endpoint{
		endpoint(http.MethodPost, accessReviewsPath, s.bounded(some.admitted(s.accessReview)), "Reports whether the caller may do something.", reviewParams, &openapi.Content{Media: reviewTypes, Shape: access}, 201, openapi.Content{Media: objectTypes, Shape: access}),
		endpoint(http.MethodPost, rulesReviewsPath, s.bounded(some.admitted(s.rulesReview)), "Lists what the caller may do.", reviewParams, &openapi.Content{Media: reviewTypes, Shape: rules}, 201, openapi.Content{Media: objectTypes, Shape: rules}),
	}
}

// mountStatus refuses writes of an object's status and says why.
func (s *Server) mountStatus(r chi.Router, kind *schema.Kind, version string) {
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		r.Method(method, "/apis/"+kind.In(version)+"/namespaces/{namespace}/"+kind.Plural+"/{name}/status", s.handle(statusIsComputed))
	}
}

func endpoint(method, path string, handler http.HandlerFunc, doc string, params []string, body *openapi.Content, success int, answer openapi.Content) openapi.Endpoint {
	return openapi.Endpoint{Method: method, Path: path, Handler: handler, Doc: doc, Params: params, Body: body, Success: success, Answer: answer}
}

// mount adds routes for endpoints.
func mount(r chi.Router, endpoints []openapi.Endpoint) {
	for _, e := range endpoints {
		r.Method(e.Method, e.Path, e.Handler)
	}
}
