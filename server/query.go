package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
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
			s.fail(w, r, badRequest("query %q: %v", r.URL.RawQuery, err))
			return
		}
		notesOf(r).query = query
		next.ServeHTTP(w, r)
	})
}

// checkParams refuses unknown and repeated parameters: a typo in a selector must
// not select everything.
func checkParams(q url.Values, allowed []string) error {
	for name, values := range q {
		if !slices.Contains(allowed, name) {
			return badRequest("unknown query parameter %q, allowed here are: %s", name, strings.Join(allowed, ", "))
		}
		if len(values) > 1 {
			return badRequest("query parameter %q is given %d times, allowed is once", name, len(values))
		}
	}
	return nil
}

func badParam(q url.Values, name, allowed string) error {
	return badRequest("query parameter %s: must be %s, found %q", name, allowed, q.Get(name))
}

// kindNamed returns the kind that a field names.
func kindNamed(field, name string) (*schema.Kind, error) {
	if kind, ok := schema.KindByName(name); ok {
		return kind, nil
	}
	return nil, badRequest("%s: there is no kind %q; %s", field, name, schema.Suggest(name, schema.KindNames(), "there are"))
}

// given returns a parameter, or nil if it is missing.
func given(q url.Values, name string) *string {
	if !q.Has(name) {
		return nil
	}
	return &q[name][0]
}

// checkFilled refuses empty parameters whose absence would widen the effect of the
// request: an unset variable must not do that.
func checkFilled(q url.Values, names ...string) error {
	for _, name := range names {
		if q.Has(name) && q.Get(name) == "" {
			return badRequest("query parameter %s: must not be empty", name)
		}
	}
	return nil
}

func boolParam(q url.Values, name string) (bool, error) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, badParam(q, name, "true or false")
}

func durationParam(q url.Values, name string, unset time.Duration) (time.Duration, error) {
	text := q.Get(name)
	if text == "" || text == "0" || text == "0s" {
		return unset, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, badParam(q, name, "a duration like 30s")
	}
	return d, nil
}

// countParam reads a number that is not negative; 0 if unset.
func countParam(q url.Values, name string) (int64, error) {
	if q.Get(name) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, badParam(q, name, "a whole number, 0 or more")
	}
	return n, nil
}

// choiceParam reads one of several words; "" if unset.
func choiceParam(q url.Values, name string, choices ...string) (string, error) {
	value := q.Get(name)
	if value == "" || slices.Contains(choices, value) {
		return value, nil
	}
	return "", badParam(q, name, "one of "+strings.Join(choices, ", "))
}

// atLeastParam converts a resourceVersion to the freshness that it asks for, by the
// Kubernetes rules: unset means the newest, "0" means any, another value means not
// older than that.
func atLeastParam(q url.Values) (int64, error) {
	n, err := countParam(q, "resourceVersion")
	if err != nil {
		return 0, badParam(q, "resourceVersion", "the resourceVersion of an object or a list, or 0")
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
	match, err := choiceParam(q, "resourceVersionMatch",
		string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan))
	switch {
	case err != nil:
		return store.ListOptions{}, err
	case match == "":
		return store.ListOptions{AtLeast: atLeast}, nil
	case q.Get("resourceVersion") == "":
		return store.ListOptions{}, badRequest("query parameter resourceVersionMatch: only allowed together with resourceVersion")
	case match == string(metav1.ResourceVersionMatchNotOlderThan):
		return store.ListOptions{AtLeast: atLeast}, nil
	case atLeast == store.Any:
		return store.ListOptions{}, badRequest("query parameter resourceVersionMatch: Exact needs a resourceVersion other than 0")
	}
	return store.ListOptions{Exact: atLeast}, nil
}
