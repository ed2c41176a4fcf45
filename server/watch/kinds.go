package watch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// watchPath watches several kinds.
const watchPath = "/apis/" + wire.RegistryVersion + "/watch"

var watchKindsParams = wire.Params("kinds", "namespace", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "statusEvents", "wholeRevisions")

// watchKinds answers a watch of several kinds in the order of revisions: the events
// of a transaction follow each other, whatever kinds it changed.
func (h *Handler) watchKinds(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return errNoHead()
	}
	q := wire.Query(r)
	kinds, err := kindsParam(q)
	if err != nil {
		return err
	}
	namespace := q.Get("namespace")
	if q.Has("namespace") && schema.CheckNamespace(namespace) != nil {
		return wire.BadParam(q, "namespace", "the name of one, or left out for all")
	}
	if kinds == nil {
		kinds = schema.MeshKinds()
	}
	if err := h.allowKinds(r.Context(), kinds, namespace); err != nil {
		return err
	}
	ctx, stop := h.opts.WhileAllowed(r, func(ctx context.Context) bool { return h.allowKinds(ctx, kinds, namespace) == nil })
	defer stop()
	r = r.WithContext(ctx)
	k := h.of(nil, "")
	asked, err := k.watchRequest(r, store.Scope{Namespace: namespace}, watchKindsParams, wire.JSON, wire.Events)
	if err != nil {
		return err
	}
	asked.selected.Kinds = kinds
	return k.serveWatch(w, r, asked)
}

// allowKinds returns an error unless the caller may watch each of the kinds.
func (h *Handler) allowKinds(ctx context.Context, kinds []*schema.Kind, namespace string) error {
	for _, kind := range kinds {
		if err := h.opts.Guard.CheckScope(ctx, "watch", kind, namespace); err != nil {
			return err
		}
	}
	return nil
}

// kindsParam reads the kinds; nil means all schema.MeshKinds.
func kindsParam(q url.Values) ([]*schema.Kind, error) {
	if !q.Has("kinds") {
		return nil, nil
	}
	var kinds []*schema.Kind
	for name := range strings.SplitSeq(q.Get("kinds"), ",") {
		kind, ok := schema.KindByName(name)
		if !ok {
			return nil, wire.BadParam(q, "kinds", "some of "+strings.Join(schema.KindNames(), ","))
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// Endpoint returns the endpoint of watches of several kinds.
func (h *Handler) Endpoint() openapi.Endpoint {
	types := slices.Concat(wire.JSON.Names(), wire.Events.Names())
	return openapi.Endpoint{Method: http.MethodGet, Path: watchPath, Watch: h.watchKinds, Params: watchKindsParams, Success: 200,
		Answer: openapi.Content{Media: types, Shape: openapi.AnyShape}, Doc: "Watches objects of several kinds."}
}
