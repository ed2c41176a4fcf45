package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/reach"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

const reachPath = "/apis/" + wire.RegistryVersion + "/reach"

var reachParams = wire.Params("from", "to", "limit", "resourceVersion")

// reach answers who can call whom, for the proxies of all replicas. A Warning header names each
// replica that does not answer; whether its workloads have proxies is then not known. A caller of
// the API that has the right only in some namespaces sees the services and callers of these, and no
// names of objects of others. resourceVersion is as in problems.
func (h *Handler) reach(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, reachParams); err != nil {
		return err
	}
	opts, err := reachOptions(q)
	if err != nil {
		return err
	}
	atLeast, err := wire.AtLeastParam(q)
	if err != nil {
		return err
	}
	may := h.namespaces(r.Context(), "get", "reach")
	if opts.May = may; may("") {
		opts.May = nil
	}
	if err := h.AwaitPublished(r.Context(), atLeast); err != nil {
		return err
	}
	all, silent := h.ProxiesEverywhere(w, r)
	opts.Proxies = discovery.FleetOf(all, len(silent) == 0)
	ctx, cancel := context.WithTimeout(r.Context(), previewTimeout)
	defer cancel()
	found, err := h.opts.Discovery.Reach(ctx, opts)
	switch {
	case errors.Is(err, discovery.ErrOutOfSight):
		return h.opts.Guard.Denied(r.Context(), inspecting("get", "reach", ""))
	case errors.Is(err, reach.ErrNothing), errors.Is(err, reach.ErrTooMuch):
		return wire.BadRequest("%v", err)
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
		return wire.BadRequest("%v: no answer within %v: ask about fewer services with from and to", reach.ErrTooMuch, previewTimeout)
	case err != nil:
		return notCompiled(err)
	}
	if opts.May != nil {
		found.HideObjects(func(ref diag.Ref) bool { return !may(ref.Namespace) })
	}
	return answer.WriteJSON(w, r, found)
}

func reachOptions(q url.Values) (opts reach.Options, err error) {
	if opts.From, err = reach.ParseSelector(q.Get("from"), true); err != nil {
		return opts, wire.BadRequest("from: %v", err)
	}
	if opts.To, err = reach.ParseSelector(q.Get("to"), false); err != nil {
		return opts, wire.BadRequest("to: %v", err)
	}
	limit, err := wire.CountParam(q, "limit")
	if err != nil {
		return opts, err
	}
	if limit > reach.MostRows {
		return opts, wire.BadRequest("limit: at most %d, found %d", reach.MostRows, limit)
	}
	opts.Limit = int(limit)
	return opts, nil
}
