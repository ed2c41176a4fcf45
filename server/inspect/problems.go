package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// ProblemsPath lists the problems of the published configuration.
const ProblemsPath = "/debug/problems"

var problemParams = wire.Params("resourceVersion", "local", "api", "namespace")

// publishTimeout is how long a request waits for the configuration of a revision.
// It is shorter than clients wait.
const publishTimeout = 10 * time.Second

// Problems answers with the problems of the published configuration and with the revision
// that it was compiled from. As in a list, resourceVersion sets the required freshness:
// unset means the newest, 0 means any, and another value means not older than that. Unless
// local=true, the answer includes the refusals by proxies of other replicas, and the
// Gateways that no router of any replica serves. With api=v1 it includes the features that
// Envoys of that API would lose, for all proxies that this replica knows, even if none uses
// v1. namespace selects the problems of the objects in one namespace.
func (h *Handler) Problems(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, problemParams); err != nil {
		return err
	}
	atLeast, err := wire.AtLeastParam(q)
	if err != nil {
		return err
	}
	local, err := h.isLocal(r, q)
	if err != nil {
		return err
	}
	inV1, err := asksV1(q)
	if err != nil {
		return err
	}
	if err := h.checkNamespace(r, q); err != nil {
		return err
	}
	if err := h.AwaitPublished(r.Context(), atLeast); err != nil {
		return err
	}
	var out reported
	report := h.opts.Discovery.Report()
	if inV1 {
		lost, left, err := h.opts.Discovery.LostInV1(r.Context())
		if err != nil {
			return notCompiled(err)
		}
		report, out.NotLookedAt = report.With(lost), left
	}
	if !local {
		report = report.With(h.problemsOfOthers(w, r, q))
		idle, err := h.idleGateways(r.Context(), report.Problems)
		if err != nil {
			return err
		}
		report = report.With(idle)
	}
	out.Revision = report.Revision
	out.Problems, out.Limited = h.selected(r.Context(), q, report.Problems)
	return h.opts.LargeReads.WriteJSON(w, r, "problems", func() (any, error) { return out, nil })
}

// checkNamespace refuses a namespace whose problems the caller may not see.
func (h *Handler) checkNamespace(r *http.Request, q url.Values) error {
	if !q.Has("namespace") {
		return nil
	}
	namespace := q.Get("namespace")
	if err := schema.CheckNamespace(namespace); err != nil {
		return wire.BadRequest("namespace: %v", err)
	}
	return h.opts.Guard.Check(r.Context(), inspecting("list", "problems", namespace))
}

// selected returns the problems of the namespace that is asked for, or all that the caller may
// see. limited reports whether there may be others.
func (h *Handler) selected(ctx context.Context, q url.Values, problems diag.List) (shown diag.List, limited bool) {
	if !q.Has("namespace") {
		return h.visible(ctx, problems)
	}
	shown = slices.DeleteFunc(append(diag.List{}, problems...), func(p diag.Problem) bool { return p.Object.Namespace != q.Get("namespace") })
	return h.opts.Guard.HideNames(ctx, shown), false
}

// visible returns the problems that the caller may see: all, or those of objects in namespaces
// whose problems it may list. limited reports whether the latter holds. The list is never nil,
// and names no other objects.
func (h *Handler) visible(ctx context.Context, problems diag.List) (shown diag.List, limited bool) {
	may := h.namespaces(ctx, "list", "problems")
	shown = slices.DeleteFunc(append(diag.List{}, problems...), func(p diag.Problem) bool { return !may(p.Object.Namespace) })
	return h.opts.Guard.HideNames(ctx, shown), !may("")
}

// namespaces returns a function that reports whether the caller has a right to a resource of
// questions in a namespace. "" is the whole mesh. The function is for one goroutine.
func (h *Handler) namespaces(ctx context.Context, verb, resource string) func(namespace string) bool {
	return h.namespacesFor(ctx, inspecting(verb, resource, ""))
}

// namespacesFor is namespaces for a right whose namespace is not set.
func (h *Handler) namespacesFor(ctx context.Context, right authz.Attributes) func(namespace string) bool {
	everywhere := h.opts.Guard.Allows(ctx, right)
	allowed := map[string]bool{"": everywhere}
	return func(namespace string) bool {
		may, known := allowed[namespace]
		if !known {
			right := right
			right.Namespace = namespace
			may = everywhere || h.opts.Guard.Allows(ctx, right)
			allowed[namespace] = may
		}
		return may
	}
}

// inspecting returns the attributes of a question in a namespace, or in all with "".
func inspecting(verb, resource, namespace string) authz.Attributes {
	return authz.Attributes{Verb: verb, Group: wire.RegistryGroup, Resource: resource, Namespace: namespace}
}

// reported is the JSON form of a Report.
type reported struct {
	Revision int64     `json:"revision"`
	Problems diag.List `json:"problems"`
	// Limited is true if the problems of some namespaces are left out, and those of the
	// whole mesh, because the caller has no right to them.
	Limited bool `json:"limited,omitempty"`
	// NotLookedAt counts the kinds of proxies that were not checked because there are
	// too many.
	NotLookedAt int `json:"notLookedAt,omitempty"`
}

// asksV1 reads whether the client asks for what Envoys of the v1 API would lose.
// The v3 API has all features, so nothing is lost in it.
func asksV1(q url.Values) (bool, error) {
	switch api := q.Get("api"); api {
	case "":
		return false, nil
	case "v1":
		return true, nil
	default:
		return false, wire.BadRequest("api: want v1 or nothing, found %q", api)
	}
}

func (h *Handler) problemsOfOthers(w http.ResponseWriter, r *http.Request, q url.Values) (all diag.List) {
	ctx, cancel := context.WithTimeout(r.Context(), publishTimeout+replica.Timeout)
	defer cancel()
	var mu sync.Mutex
	h.askOthers(ctx, w, "problems", func(of replica.Replica) error {
		var found reported
		_, err := replica.Ask(ctx, of, []string{ProblemsPath}, withoutAPI(q), "", &found)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found.Problems...)
		return err
	})
	return all
}

// withoutAPI returns the query for other replicas. They have the same objects, so
// only this replica finds out what is lost of them.
func withoutAPI(q url.Values) url.Values {
	q = maps.Clone(q)
	q.Del("api")
	return q
}

// AwaitPublished waits until the configuration of objects as fresh as atLeast, in
// the sense of store.ReadOptions, has been compiled, for at most publishTimeout.
func (h *Handler) AwaitPublished(ctx context.Context, atLeast int64) error {
	if atLeast == store.Any {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	// Listing nothing brings the reads of this replica up to the revision.
	list, err := h.opts.Reads.List(ctx, nothing, store.ListOptions{AtLeast: atLeast})
	if err == nil {
		atLeast = cmp.Or(atLeast, list.Revision)
		err = h.opts.Discovery.Await(ctx, atLeast)
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	wanted := "the newest revision"
	if atLeast > 0 {
		wanted = "revision " + strconv.FormatInt(atLeast, 10)
	}
	return &store.Error{Kind: store.ErrFuture, Detail: fmt.Sprintf(
		"the configuration of %s has not been compiled in time: that of revision %d is in force; ask with resourceVersion=0 for its problems",
		wanted, h.opts.Discovery.Revision())}
}

// nothing is a scope without objects, because its namespace has an invalid name.
var nothing = store.Scope{Kind: schema.Kinds()[0], Namespace: "-"}
