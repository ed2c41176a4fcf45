package server

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
)

// kindEndpoints returns the endpoints of one kind in one version.
func (s *Server) kindEndpoints(kind *schema.Kind, version string) []openapi.Endpoint {
	return s.objects.Endpoints(kind, version, s.watches.Kind(kind, version))
}

// registryEndpoints returns the endpoints for objects of several kinds and for
// proxies.
func (s *Server) registryEndpoints() []openapi.Endpoint {
	out := slices.Concat([]openapi.Endpoint{s.watches.Endpoint(), s.objects.ChangesEndpoint()}, s.actions.Endpoints(), s.mesh.Endpoints())
	if s.inspect != nil {
		out = append(out, s.inspect.Endpoints()...)
	}
	return out
}

// reviewEndpoints returns the endpoints that report what the caller may do.
func (s *Server) reviewEndpoints() []openapi.Endpoint {
	post := func(path string, handler wire.Handler, review any, doc string) openapi.Endpoint {
		shape := openapi.ShapeOf(review)
		return openapi.Endpoint{
			Method: http.MethodPost, Path: path, Handler: s.bodies.Admitted(intake.Work{}, handler), Params: reviewParams, Doc: doc,
			Body: &openapi.Content{Media: reviewTypes, Shape: shape}, Success: 201, Answer: openapi.Content{Media: wire.ObjectTypes, Shape: shape},
		}
	}
	return []openapi.Endpoint{
		post(accessReviewsPath, s.accessReview, authorization.SelfSubjectAccessReview{}, "Reports whether the caller may do something."),
		post(rulesReviewsPath, s.rulesReview, authorization.SelfSubjectRulesReview{}, "Lists what the caller may do."),
		post(subjectReviewsPath, s.subjectReview, authorization.SubjectAccessReview{}, "Reports whether somebody may do something."),
		post(tokenPath, s.token, authentication.TokenRequest{}, "Gives a token of a ServiceAccount."),
		{
			Method: http.MethodDelete, Path: revokePath, Handler: s.revokeToken, Doc: "Ends a token of a ServiceAccount before its time. The ID is the claim jti of the token.",
			Success: 200, Answer: openapi.Content{Media: wire.ObjectTypes, Shape: openapi.ShapeOf(metav1.Status{})},
		},
		post(whoPath, s.whoReview, authentication.SelfSubjectReview{}, "Reports who the caller is."),
	}
}

// mount adds routes and rights for endpoints. kind is nil for endpoints that belong to no kind.
func (s *Server) mount(r chi.Router, kind *schema.Kind, endpoints []openapi.Endpoint) {
	s.rights.addEndpoints(kind, endpoints)
	for _, e := range endpoints {
		switch {
		case e.Watch == nil:
			r.Method(e.Method, e.Path, s.bounded(e.Handler))
		case e.Handler == nil:
			r.Method(e.Method, e.Path, s.handle(seatless(e.Watch)))
		default:
			r.Method(e.Method, e.Path, s.listOrWatch(e.Handler, e.Watch))
		}
	}
}

// mountStatus refuses writes of an object's status and says why.
func (s *Server) mountStatus(r chi.Router, kind *schema.Kind, version string) {
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		path := kind.Root(version) + "/namespaces/{namespace}/" + kind.Plural + "/{name}/status"
		s.rights[method+" "+path] = right{group: kind.Group, resource: kind.Plural, subresource: "status"}
		r.Method(method, path, s.handle(statusIsComputed))
	}
}

// statusIsComputed refuses a write of an object's status. A write of the whole
// object ignores the status in it.
func statusIsComputed(w http.ResponseWriter, r *http.Request) error {
	const allow = "GET, HEAD"
	w.Header().Set("Allow", allow)
	return wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"%s is not possible on %s, only %s: the status is computed from what the proxies acknowledge, and stored nowhere", r.Method, r.URL.Path, allow)
}

// listOrWatch answers the one URL of lists and watches. Only lists have a deadline.
func (s *Server) listOrWatch(list, watch wire.Handler) http.HandlerFunc {
	lists, watches := s.bounded(list), s.handle(seatless(watch))
	return func(w http.ResponseWriter, r *http.Request) {
		watch, err := wire.BoolParam(wire.Query(r), "watch")
		switch {
		case err != nil:
			s.fail(w, r, err)
		case watch:
			watches(w, r)
		default:
			lists(w, r)
		}
	}
}
