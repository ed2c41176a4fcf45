package mesh

import (
	"maps"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// workload is a WorkloadEntry that selectors may pick. Its labels are those of
// its metadata, overlaid with those of its spec, as in Istio.
type workload struct {
	endpoint
	selected bool
}

// workloads are all WorkloadEntries in key order, found by namespace and by
// each single label, so that a selector looks only at likely ones.
type workloads struct {
	all         []*workload
	byNamespace map[string][]*workload
	byLabel     map[label][]*workload
}

type label struct{ namespace, name, value string }

func indexWorkloads(objs []*schema.Object, report func(diag.Problem)) workloads {
	ws := workloads{byNamespace: map[string][]*workload{}, byLabel: map[label][]*workload{}}
	for _, o := range objs {
		spec, err := o.Spec()
		entry, ok := spec.(*networking.WorkloadEntry)
		if err != nil || !ok {
			report(unreadable(o, err))
			continue
		}
		reportUnheeded(entry, o.Key().Ref(), "spec", report)
		ws.add(&workload{endpoint: endpoint{spec: entry, labels: workloadLabels(o, entry), weight: int(entry.GetWeight()), origin: o.Key(), at: "spec"}})
	}
	return ws
}

func workloadLabels(o *schema.Object, entry *networking.WorkloadEntry) Labels {
	labels := Labels{}
	maps.Copy(labels, o.Meta.Labels)
	maps.Copy(labels, entry.GetLabels())
	return labels
}

func (ws *workloads) add(w *workload) {
	namespace := w.origin.Namespace
	ws.all = append(ws.all, w)
	ws.byNamespace[namespace] = append(ws.byNamespace[namespace], w)
	for name, value := range w.labels {
		at := label{namespace, name, value}
		ws.byLabel[at] = append(ws.byLabel[at], w)
	}
}

// pick returns the workloads of a namespace that have all the labels, in key
// order, and marks them as selected. A selector without labels picks all.
func (ws *workloads) pick(namespace string, selector Labels) []*workload {
	candidates := ws.byNamespace[namespace]
	for name, value := range selector {
		if some := ws.byLabel[label{namespace, name, value}]; len(some) < len(candidates) {
			candidates = some
		}
	}
	var out []*workload
	for _, w := range candidates {
		if selector.SubsetOf(w.labels) {
			w.selected = true
			out = append(out, w)
		}
	}
	return out
}

func (ws *workloads) reportUnselected(report func(diag.Problem)) {
	for _, w := range ws.all {
		if !w.selected {
			report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Object: w.origin.Ref(),
				Message: "no ServiceEntry of the namespace selects this workload, so it serves nothing",
			})
		}
	}
}
