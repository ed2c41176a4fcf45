package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Query parameters by verb. Kubernetes clients send anyParams with any request;
// pretty has no effect here.
var (
	anyParams    = []string{"pretty", "timeout"}
	getParams    = params("resourceVersion", "includeObject", "freshStatus")
	listParams   = params("labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue", "includeObject", "watch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "statusEvents", "wholeRevisions")
	writeParams  = params("dryRun", "fieldManager", "fieldValidation")
	patchParams  = append(slices.Clone(writeParams), "force")
	deleteParams = params("dryRun", "gracePeriodSeconds", "propagationPolicy", "orphanDependents")

	deleteCollectionParams = append(slices.Clone(deleteParams), "labelSelector", "fieldSelector")
)

func params(names ...string) []string { return append(slices.Clone(anyParams), names...) }

// checkURL refuses what would otherwise be ignored: a query that cannot be read, an
// empty name in the path, and a condition on a request that is not for one object.
func (s *Server) checkURL(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(chi.RouteContext(r.Context()).URLParams.Values, "") {
			s.noSuchPath(w, r)
			return
		}
		if err := checkConditions(r); err != nil {
			s.fail(w, r, err)
			return
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			s.fail(w, r, wire.BadRequest("query %q: %v", r.URL.RawQuery, err))
			return
		}
		notesOf(r).query = query
		next.ServeHTTP(w, r)
	})
}

// kindNamed returns the kind that a field names.
func kindNamed(field, name string) (*schema.Kind, error) {
	if kind, ok := schema.KindByName(name); ok {
		return kind, nil
	}
	return nil, wire.BadRequest("%s: there is no kind %q; %s", field, name, schema.Suggest(name, schema.KindNames(), "there are"))
}

// atLeastParam converts a resourceVersion to the freshness that it asks for, by the
// Kubernetes rules: unset means the newest, "0" means any, another value means not
// older than that.
func atLeastParam(q url.Values) (int64, error) {
	n, err := wire.CountParam(q, "resourceVersion")
	if err != nil {
		return 0, wire.BadParam(q, "resourceVersion", "the resourceVersion of an object or a list, or 0")
	}
	if n == 0 && q.Get("resourceVersion") != "" {
		return store.Any, nil
	}
	return n, nil
}

// listOptions reads resourceVersion together with resourceVersionMatch.
func listOptions(q url.Values) (store.ListOptions, error) {
	atLeast, err := atLeastParam(q)
	if err != nil {
		return store.ListOptions{}, err
	}
	match, err := wire.ChoiceParam(q, "resourceVersionMatch",
		string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan))
	switch {
	case err != nil:
		return store.ListOptions{}, err
	case match == "":
		return store.ListOptions{AtLeast: atLeast}, nil
	case q.Get("resourceVersion") == "":
		return store.ListOptions{}, wire.BadRequest("query parameter resourceVersionMatch: only allowed together with resourceVersion")
	case match == string(metav1.ResourceVersionMatchNotOlderThan):
		return store.ListOptions{AtLeast: atLeast}, nil
	case atLeast == store.Any:
		return store.ListOptions{}, wire.BadRequest("query parameter resourceVersionMatch: Exact needs a resourceVersion other than 0")
	}
	return store.ListOptions{Exact: atLeast}, nil
}
