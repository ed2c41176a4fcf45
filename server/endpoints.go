package server

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	authorization "k8s.io/api/authorization/v1"

	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
)

// endpoint is one method on one path. The server routes by it, and the OpenAPI
// document describes it.
type endpoint struct {
	method, path string
	handler      http.HandlerFunc
	doc          string
	params       []string // allowed in the query
	body         *content // of a request; nil if there is none
	success      int      // the only code of success
	answer       content
}

// content describes a body.
type content struct {
	media []string
	shape shape
}

// streamTypes are the media types of a watch.
var streamTypes = slices.Concat(wire.JSON.Names(), wire.Events.Names())

// kindEndpoints returns the endpoints of one kind, for all namespaces and for one.
func (s *Server) kindEndpoints(kind *schema.Kind) []endpoint {
	k := &resource{Server: s, kind: kind}
	all := "/apis/" + kind.APIVersion() + "/" + kind.Plural
	collection := "/apis/" + kind.APIVersion() + "/namespaces/{namespace}/" + kind.Plural
	object := collection + "/{name}"
	one := content{objectTypes, objectShape(kind)}
	list := content{objectTypes, listShape(kind)}
	get, post, put, patch, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	return []endpoint{
		{get, all, k.listOrWatch, "The objects of all namespaces, or a watch of them.", listParams, nil, 200, list},
		{get, collection, k.listOrWatch, "The objects of a namespace, or a watch of them.", listParams, nil, 200, list},
		{post, collection, s.bounded(k.admitted(k.create)), "Creates an object.", writeParams, &one, 201, one},
		{del, collection, s.bounded(k.admitted(k.deleteCollection)), "Deletes the objects that are selected, all without a selector.", deleteCollectionParams, &content{objectTypes, anyShape}, 200, list},
		{get, object, s.bounded(k.get), "The object as it is stored, with its status.", getParams, nil, 200, one},
		{get, object + "/status", s.bounded(k.get), "The object with its status.", getParams, nil, 200, one},
		{get, object + "/history", s.bounded(k.history), "The versions of the object that are known, the newest first.", historyParams, nil, 200, answerOf(historyAnswer{})},
		{get, object + "/history/{revision}", s.bounded(k.atRevision), "The object as it was at a revision.", historyParams, nil, 200, one},
		{put, object, s.bounded(k.admitted(k.update)), "Replaces the object.", writeParams, &one, 200, one},
		{patch, object, s.bounded(k.admitted(k.patch)), "Changes a part of the object, or applies one.", patchParams, &content{slices.Concat(patchTypes, applyTypes), anyShape}, 200, one},
		{del, object, s.bounded(k.admitted(k.delete)), "Deletes the object.", deleteParams, &content{objectTypes, anyShape}, 200, one},
	}
}

// registryEndpoints returns the endpoints for objects of several kinds and for
// proxies.
func (s *Server) registryEndpoints() []endpoint {
	some := &resource{Server: s}
	get, post := http.MethodGet, http.MethodPost
	asked := func(v any) *content { return &content{objectTypes, shapeOf(v)} }
	written := answerOf(transactionResult{})
	out := []endpoint{
		{get, watchPath, s.handle(s.watchKinds), "The changes of several kinds as they happen.", watchKindsParams, nil, 200, content{streamTypes, anyShape}},
		{get, changesPath, s.bounded(s.changes), "What has changed since a revision.", changesParams, nil, 200, answerOf(changesAnswer{})},
		{post, transactionsPath, s.bounded(some.admittedUpTo(maxTransaction, s.transaction)), "Does all operations at one revision, or none.", transactionParams, asked(transaction{}), 200, written},
		{post, rollbacksPath, s.bounded(some.admitted(s.rollback)), "Makes an object or a namespace what it was at a revision.", rollbackParams, asked(rollback{}), 200, written},
	}
	if s.opts.Discovery == nil {
		return out
	}
	routeParams := append(inspectParams[:len(inspectParams):len(inspectParams)], "url", "method", "header")
	configParams := append(inspectParams[:len(inspectParams):len(inspectParams)], "summary", "transport")
	return append(out,
		endpoint{get, referencesPath, s.bounded(s.references), "What an object names, and what names it.", referenceParams, nil, 200, answerOf(referencesAnswer{})},
		endpoint{get, proxiesPath, s.bounded(s.proxies), "The proxies that are connected.", proxyParams, nil, 200, answerOf([]proxy{})},
		endpoint{get, standingsPath, s.bounded(s.standings), "How the objects stand with the proxies of this replica.", standingsParams, nil, 200, answerOf(status.Report{})},
		endpoint{get, proxiesPath + "/{node}", s.bounded(s.proxy), "The connections of one proxy.", proxyParams, nil, 200, answerOf([]proxy{})},
		endpoint{get, proxiesPath + "/{node}/config/{type}", s.bounded(s.proxyConfig), "What a proxy is told of one type of resources, or of all.", configParams, nil, 200, answerOf(inspected{})},
		endpoint{get, proxiesPath + "/{node}/route", s.bounded(s.proxyRoute), "What a proxy does with a request, or all its routes.", routeParams, nil, 200, answerOf(struct {
			inspected
			*explain.Explanation
		}{})},
		endpoint{post, previewPath, s.bounded(some.admitted(s.preview)), "What objects would change in what proxies are told.", previewParams, &content{objectTypes, anyShape}, 200, answerOf(previewed{})},
	)
}

// reviewEndpoints returns the endpoints that report what the caller may do.
func (s *Server) reviewEndpoints() []endpoint {
	some := &resource{Server: s}
	access, rules := shapeOf(authorization.SelfSubjectAccessReview{}), shapeOf(authorization.SelfSubjectRulesReview{})
	return []endpoint{
		{http.MethodPost, accessReviewsPath, s.bounded(some.admitted(s.accessReview)), "Whether one may do something.", reviewParams, &content{reviewTypes, access}, 201, content{objectTypes, access}},
		{http.MethodPost, rulesReviewsPath, s.bounded(some.admitted(s.rulesReview)), "What one may do.", reviewParams, &content{reviewTypes, rules}, 201, content{objectTypes, rules}},
	}
}

// mountStatus refuses writes of an object's status and says why.
func (s *Server) mountStatus(r chi.Router, kind *schema.Kind) {
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		r.Method(method, "/apis/"+kind.APIVersion()+"/namespaces/{namespace}/"+kind.Plural+"/{name}/status", s.handle(statusIsComputed))
	}
}

// mount adds routes for endpoints.
func mount(r chi.Router, endpoints []endpoint) {
	for _, e := range endpoints {
		r.Method(e.method, e.path, e.handler)
	}
}
