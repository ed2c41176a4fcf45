package inspect

import (
	"context"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// gatewayKind exists, because schema has it.
var gatewayKind, _ = schema.Lookup("gateways")

// idleGateways returns a problem for each Gateway that no connected proxy of any replica
// serves. It leaves out a Gateway that is in known, because that problem may be why no
// proxy serves it, and one of which this is not known: a replica does not answer, or
// proxies may be on their way back.
func (h *Handler) idleGateways(ctx context.Context, known diag.List) (diag.List, error) {
	list, err := h.opts.Reads.List(ctx, store.Scope{Kind: gatewayKind}, store.ListOptions{AtLeast: store.Any})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	explained := map[diag.Ref]bool{}
	for _, p := range known {
		explained[p.Object] = true
	}
	h.opts.Statuses.Refresh(ctx)
	table := h.opts.Statuses.Recent()
	var idle diag.List
	for _, o := range list.Items {
		ref := o.Key().Ref()
		if status, _ := table.Of(o); explained[ref] || status.Condition(schema.ConditionProgrammed).Reason != schema.ReasonNoProxies {
			continue
		}
		idle = append(idle, diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.SelectsNothing, Object: ref, Field: "spec.selector",
			Message: "no router that is connected has these labels, so the Gateway opens no port: let the node of a router state them in metadata.LABELS (istioctl bootstrap --labels)",
		})
	}
	return idle, nil
}
