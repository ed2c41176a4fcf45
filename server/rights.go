package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/authority"
	"github.com/pilot-api/pilot-api/server/inspect"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
)

// right is what an identity must be allowed to do for a request of a route. A right without
// a resource is for the path. The verb is that of the method, unless it is given.
type right struct {
	verb, group, resource, subresource string
	// doc says which further rights a request needs. With inHandler these are all, and the
	// handler checks them, because the body or the query says what they are.
	doc       string
	inHandler bool
	// streams says that the answer never ends by itself, as a watch.
	streams bool
	// objects says that requests and answers have objects that the audit log may show: nothing
	// in them is private as a whole.
	objects bool
}

// rights are the rights of routes, by method and pattern. A route without one is refused.
type rights map[string]right

// fixedRights are those of routes that are no endpoints of objects, reviews or actions.
var fixedRights = rights{
	"GET /":                                   {},
	"GET /version":                            {},
	"GET /debug/pprof/":                       {},
	"GET /debug/pprof/{profile}":              {},
	"GET /metrics":                            {},
	"GET /api":                                {},
	"GET /api/v1":                             {},
	"GET /api/v1/namespaces/{namespace}":      {resource: "namespaces"},
	"GET /apis":                               {},
	"GET /apis/{group}":                       {},
	"GET /apis/{group}/{version}":             {},
	"GET /openapi/v2":                         {},
	"GET /openapi/v3":                         {},
	"GET /openapi/v3/apis/{group}/{version}":  {},
	"GET /openapi/v3/api/v1":                  {},
	"GET " + inspect.ProblemsPath:             {verb: "list", group: wire.RegistryGroup, resource: "problems", doc: "without it for all namespaces, the problems of the namespaces for which the caller has it", inHandler: true},
	"* /api/v1/namespaces":                    {resource: "namespaces"},
	"* /api/v1/events":                        {resource: "events"},
	"* /api/v1/namespaces/{namespace}/events": {resource: "events"},
}

// addEndpoints adds the rights of endpoints. Those of a kind have its resource; all others
// must be in registryRights.
func (t rights) addEndpoints(kind *schema.Kind, endpoints []openapi.Endpoint) {
	for _, e := range endpoints {
		row := right{}
		if kind != nil {
			row = right{group: kind.Group, resource: kind.Plural, subresource: subresourceOf(kind, e.Path), objects: !kind.HasPrivateFields()}
		} else {
			known, ok := registryRights[e.Method+" "+e.Path]
			if !ok {
				panic(fmt.Sprintf("%s %s has no right", e.Method, e.Path))
			}
			row = known
		}
		t[e.Method+" "+e.Path] = row
	}
}

// subresourceOf returns the part of a path behind the name of an object.
func subresourceOf(kind *schema.Kind, path string) string {
	_, rest, _ := strings.Cut(path, "/"+kind.Plural+"/{name}/")
	sub, _, _ := strings.Cut(rest, "/")
	return sub
}

// registryRights are those of endpoints that are not about one kind.
var registryRights = func() rights {
	in := func(verb, resource, subresource string) right {
		return right{verb: verb, group: wire.RegistryGroup, resource: resource, subresource: subresource}
	}
	inNamespaces := func(verb, resource, doc string) right {
		return right{verb: verb, group: wire.RegistryGroup, resource: resource, doc: doc, inHandler: true}
	}
	ofProxies := func(verb, subresource string) right {
		row := in(verb, "proxies", subresource)
		row.inHandler, row.doc = true, "for all namespaces, or in that of the proxy"
		return row
	}
	ofAuthority := func(verb, subresource string) right {
		row := in(verb, "authority", subresource)
		row.objects = true
		return row
	}
	base := "/apis/" + wire.RegistryVersion
	return rights{
		"GET " + base + "/watch":                               {doc: "watch on each of the kinds", inHandler: true, streams: true},
		"GET " + base + "/changes":                             {doc: "list on each of the kinds, and get on their histories", inHandler: true},
		"POST " + base + "/transactions":                       {doc: "the right of each operation", inHandler: true, objects: true},
		"POST " + base + "/rollbacks":                          {doc: "the right of each change that it makes, and list on the kinds and get on their histories", inHandler: true, objects: true},
		"GET " + base + "/references":                          inNamespaces("get", "references", "in the namespace of the object; references to and from others are shown for the namespaces for which the caller has it"),
		"GET " + base + "/reach":                               inNamespaces("get", "reach", "for all namespaces, or in some; then the answer has the services and callers of these"),
		"GET " + inspect.ProxiesPath:                           inNamespaces("list", "proxies", "without it for all namespaces, the proxies of the namespaces for which the caller has it"),
		"GET " + base + "/standings":                           in("get", "standings", ""),
		"GET " + inspect.ProxiesPath + "/{node}":               ofProxies("get", ""),
		"GET " + inspect.ProxiesPath + "/{node}/config/{type}": ofProxies("get", "config"),
		"GET " + inspect.ProxiesPath + "/{node}/route":         ofProxies("get", "route"),
		"POST " + base + "/preview":                            inNamespaces("create", "previews", "for all namespaces, or in those of the objects; then the preview is of the proxies there"),
		"GET " + authority.Path:                                ofAuthority("get", ""),
		"POST " + authority.RevocationsPath:                    ofAuthority("create", "revocations"),
		"POST " + authority.RotationPath:                       ofAuthority("create", "rotation"),
		"POST " + accessReviewsPath:                            {verb: "create", group: reviewsGroup, resource: "selfsubjectaccessreviews", objects: true},
		"POST " + subjectReviewsPath:                           {verb: "create", group: reviewsGroup, resource: "subjectaccessreviews", objects: true},
		"POST " + tokenPath:                                    {verb: "create", resource: "serviceaccounts", subresource: "token"},
		"DELETE " + revokePath:                                 {verb: "delete", resource: "serviceaccounts", subresource: "token"},
		"POST " + whoPath:                                      {verb: "create", group: whoGroup, resource: "selfsubjectreviews", objects: true},
		"POST " + rulesReviewsPath:                             {verb: "create", group: reviewsGroup, resource: "selfsubjectrulesreviews", objects: true},
	}
}()

// attributes returns what a request asks for.
func (row right) attributes(r *http.Request) authz.Attributes {
	a := authz.Attributes{
		Verb: row.verb, Group: row.group, Resource: row.resource, Subresource: row.subresource,
		Namespace: wire.PathParam(r, "namespace"), Name: wire.PathParam(r, "name"),
	}
	if row.resource == "" {
		a.Path, a.Namespace = r.URL.Path, ""
	}
	if row.resource == "namespaces" {
		a.Name = a.Namespace
	}
	if a.Verb == "" {
		a.Verb = verbOf(r, row, a.Name != "")
	}
	return a
}

// verbOf returns the verb of a method on one object or on a collection.
func verbOf(r *http.Request, row right, one bool) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case row.resource == "" || one:
			return "get"
		case isWatch(r):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if one {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(r.Method)
}

// isWatch reports whether a request of a collection is a watch. A value that cannot be read
// is refused later.
func isWatch(r *http.Request) bool {
	watch, err := wire.BoolParam(wire.Query(r), "watch")
	return err == nil && watch
}

// isStream reports whether a request is a watch of one kind.
func isStream(row right, asked authz.Attributes) bool {
	return asked.Verb == "watch" && row.resource != ""
}

// routeRight returns the right of the route of a request.
func (s *Server) routeRight(r *http.Request) (right, bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	pattern := chi.RouteContext(r.Context()).RoutePattern()
	if row, ok := s.rights[method+" "+pattern]; ok {
		return row, true
	}
	row, ok := s.rights["* "+pattern]
	return row, ok
}

// authorize refuses requests that the identity of their sender has no right to.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		row, ok := s.routeRight(r)
		if !ok {
			s.fail(w, r, forbidden("there is no right to %s %s", r.Method, r.URL.Path))
			return
		}
		asked := row.attributes(r)
		s.recordObjects(r, row, asked)
		err := s.allow(r, row, asked)
		if err == nil {
			err = s.received(r)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if !isStream(row, asked) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, stop := s.whileAllowed(r, func(ctx context.Context) bool { return s.guard.Allows(ctx, asked) })
		defer stop()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// allow returns an error unless the sender of a request has the right of its route.
func (s *Server) allow(r *http.Request, row right, asked authz.Attributes) error {
	if row.inHandler {
		return nil
	}
	who := identity.Of(r.Context())
	d := s.guard.Authorize(r.Context(), who, asked)
	if e := audit.Of(r.Context()); e != nil {
		e.Decide(d.Allowed, d.Reason)
	}
	if !d.Allowed {
		return authz.Forbidden(who, asked, d.Reason)
	}
	return nil
}

// recheck is how often the right to a running watch is checked again.
const recheck = 2 * time.Second

// whileAllowed returns a context that ends when the sender of a request no longer proves an
// identity, may no longer act as somebody else, or is no longer allowed something. The context
// that allowed is called with has the identity of that time, with its present groups.
func (s *Server) whileAllowed(r *http.Request, allowed func(context.Context) bool) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(r.Context())
	if s.opts.Authn == nil {
		return ctx, stop // Everybody may do everything.
	}
	still := func() bool {
		who, err := s.opts.Authn.Again(r)
		if err == nil {
			who, err = s.impersonated(r, who)
		}
		return err == nil && allowed(identity.NewContext(ctx, who))
	}
	var mu sync.Mutex // so that the function sees the timer
	mu.Lock()
	defer mu.Unlock()
	var look *time.Timer
	look = time.AfterFunc(recheck, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case still():
			look.Reset(recheck)
		default:
			stop()
		}
	})
	return ctx, func() { look.Stop(); stop() }
}
